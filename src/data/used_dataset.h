// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A data set with what is said about its use: which of its samples are in an epoch, how often, in which
// order, and what they are mixed with. The step plan and the source of batches follow it.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"
#include "data/sample_choice.h"

namespace lockstep {

class ClassQuotas;
class LengthBuckets;
class SampleMixing;

struct SampleUse {
  /// The samples that are used; null: all.
  std::shared_ptr<const SampleChoice> choice;
  /// How often those of each class are in an epoch of training; null: as often as others.
  std::shared_ptr<const ClassQuotas> quotas;
  /// Batches have sequences of similar lengths; null: of any.
  std::shared_ptr<const LengthBuckets> buckets;
  /// Samples of batches are mixed with others; null: they are not.
  std::shared_ptr<const SampleMixing> mixing;
};

/// A pointer to a data set, or to none, and its use.
class UsedDataset {
 public:
  UsedDataset() = default;
  UsedDataset(std::shared_ptr<const Dataset> data, SampleUse use = {})
      : data_(std::move(data)), use_(std::move(use)) {}

  explicit operator bool() const { return data_ != nullptr; }
  const Dataset* get() const { return data_.get(); }
  const Dataset& operator*() const { return *data_; }
  const Dataset* operator->() const { return data_.get(); }
  const SampleUse& use() const { return use_; }

  /// The number of samples that are chosen.
  std::int64_t num_chosen() const { return use_.choice != nullptr ? use_.choice->size() : data_->size(); }
  /// Their blocks; the indices of a choice are counted.
  BlockGrid chosen_blocks() const {
    return use_.choice != nullptr ? use_.choice->blocks(data_->blocks()) : data_->blocks();
  }

 private:
  std::shared_ptr<const Dataset> data_;
  SampleUse use_;
};

}  // namespace lockstep
