// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which samples of a data set are used: a random part of them, a number of them, or both. A computation
// without tables, unless samples are listed, for any number of them: parts with the same seed and unit that
// touch have no sample in common, and together have all.
//
// Vocabulary: a unit is a number of consecutive samples that stay together. The units are permuted once; a
// place is an index into that order. A part is a range of places, or all places but a range.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/range.h"
#include "data/block_grid.h"
#include "data/permutation.h"

namespace lockstep {

struct RandomPart {
  std::int64_t unit = 1;  ///< samples
  std::uint64_t seed = 0;
  Range places{0, 0};
  bool all_but = false;  ///< all places but these
};

/// A place belongs to the part.
inline bool has_place(const RandomPart& part, std::int64_t place) {
  return (place >= part.places.first && place < part.places.last) != part.all_but;
}

/// The number of units of `num_samples` samples. The last unit may be shorter.
inline std::int64_t units_of(std::int64_t num_samples, std::int64_t unit) {
  return (num_samples + unit - 1) / unit;
}

class SampleChoice {
 public:
  struct Spec {
    std::int64_t num_samples = 0;  ///< of the data set
    std::optional<RandomPart> part = std::nullopt;
    /// The samples, ascending, instead of a part.
    std::shared_ptr<const std::vector<std::uint32_t>> list = nullptr;
    std::int64_t skip = 0;                            ///< of the part, in its order
    std::optional<std::int64_t> take = std::nullopt;  ///< samples of the rest; empty: all
  };

  /// Throws Error(config) if nothing is left, or less than what `take` wants.
  explicit SampleChoice(const Spec& spec);

  /// How many samples are used.
  std::int64_t size() const { return size_; }
  /// The sample at `index` below size(). Without a part in the order of the files, otherwise in that of the
  /// places.
  std::int64_t at(std::int64_t index) const;
  /// How many consecutive samples stay together; all without a part.
  std::int64_t unit() const { return spec_.part ? spec_.part->unit : spec_.num_samples; }
  /// Blocks of indices that have about the samples of the blocks of the whole set.
  BlockGrid blocks(const BlockGrid& of_set) const;

 private:
  std::int64_t in_part(std::int64_t index) const;

  Spec spec_;
  std::int64_t size_ = 0;
  KeyedPermutation units_;
  std::int64_t after_short_unit_ = 0;  ///< the first index beyond the shorter unit
  std::int64_t missing_ = 0;           ///< samples that it lacks; 0 if it is not in the part
};

}  // namespace lockstep
