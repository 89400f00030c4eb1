// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The samples of each class: a table of four bytes per sample, for what arithmetic alone cannot do, such as
// epochs in which all classes are equally frequent. A class is a value of the labels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/sample_choice.h"

namespace lockstep {

class Dataset;

class ClassLists {
 public:
  /// The lists of the samples that `choice` takes (null: all), whose labels are `labels` by sample. Throws
  /// Error(config) for more than 2^32 samples.
  ClassLists(std::span<const std::int32_t> labels, const SampleChoice* choice);

  /// Classes that have samples.
  std::size_t size() const { return labels_.size(); }
  /// The labels of these classes, ascending.
  const std::vector<std::int32_t>& labels() const { return labels_; }
  std::int64_t num_samples() const { return static_cast<std::int64_t>(samples_.size()); }
  /// The samples of a class, in the order of the choice.
  std::span<const std::uint32_t> samples(std::size_t of_class) const {
    return std::span(samples_).subspan(first_[of_class], first_[of_class + 1] - first_[of_class]);
  }

 private:
  std::vector<std::int32_t> labels_;
  std::vector<std::size_t> first_;  ///< of each class, and the end
  std::vector<std::uint32_t> samples_;
};

/// The class of each sample. Reads the labels of a set that is not in memory once, block by block. Throws
/// Error(data) unless each sample has one class index.
std::vector<std::int32_t> class_labels(const Dataset& data);

}  // namespace lockstep
