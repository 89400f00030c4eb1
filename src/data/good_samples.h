// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The samples of a set without those of its bad records: a number among the good samples becomes the number
// in the files by a search among the bad ones. Nothing is kept per good sample.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/sample_checks.h"
#include "data/sample_store.h"

namespace lockstep {

class GoodSamples {
 public:
  /// `bad`: ascending, distinct, of `num_samples` from 0 on.
  GoodSamples(std::int64_t num_samples, const std::vector<std::int64_t>& bad);

  /// Good ones.
  std::int64_t size() const { return size_; }
  /// The number in the files of good sample i.
  std::int64_t at(std::int64_t i) const { return i + bad_before(i); }
  /// How many good samples follow one another in the files from good sample i on, i among them.
  std::int64_t run_from(std::int64_t i) const;

 private:
  std::int64_t bad_before(std::int64_t i) const;

  std::int64_t size_;
  std::vector<std::int64_t> next_good_;  ///< of each bad sample: how many good ones are before it
};

/// Reads the good samples of `store`, whose samples have so many bytes and labels.
std::shared_ptr<SampleStore> good_samples_of(std::shared_ptr<SampleStore> store, GoodSamples good,
                                             std::int64_t sample_bytes, std::int64_t label_columns);

/// Where the good ones of the samples that `origin` describes come from. Each of its `files` ends before a
/// bad sample, so blocks of samples are those of the files.
SampleOrigin good_origin(std::shared_ptr<const SampleOrigin> origin, const GoodSamples& good);

}  // namespace lockstep
