// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The samples of a set without those of its bad records: a number among the good samples becomes the number
// in the files by a search among the bad ones. Nothing is kept per good sample. Each of the files of an
// origin ends before a bad sample, so blocks of samples are those of the files.
//
// A chunk of HDF5 with a bad sample in its middle is two blocks, and is decompressed twice. The rows of a
// table are parsed at the start anyway, and its bad rows are taken out of the memory instead.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/opened_samples.h"

namespace lockstep {

class GoodSamples {
 public:
  /// `bad`: ascending, distinct, of `num_samples` from 0 on.
  GoodSamples(std::int64_t num_samples, const std::vector<std::int64_t>& bad);

  /// The number of good samples.
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

/// The other samples of a set, which are counted anew, as if the files had none of these. `bad`: bad records
/// of this set; `samples`: those, and others that are bad elsewhere, ascending. Once for a set. Throws
/// Error(config) if its samples overlap, and Error(data) if none is left.
OpenedSamples leave_out(OpenedSamples set, std::vector<BadRecord> bad,
                        const std::vector<std::int64_t>& samples);

}  // namespace lockstep
