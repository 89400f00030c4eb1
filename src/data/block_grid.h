// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a data set: consecutive samples of one file that are read together, for example an HDF5
// chunk. Numbered through all files. All blocks have the same size except the first and the last of a file.
#pragma once

#include <cstdint>
#include <vector>

#include "core/range.h"

namespace lockstep {

class BlockGrid {
 public:
  /// The samples from `first_sample` on are consecutive records of one file, from `first_record` on. Blocks
  /// begin at records that are multiples of the block's size.
  struct Piece {
    std::int64_t first_sample, first_record;
  };
  /// A block with fewer samples than others.
  struct Short {
    std::int64_t block, missing;
  };

  /// `pieces`: ascending, the first at sample 0, none empty. `block_samples` >= 1.
  BlockGrid(std::vector<Piece> pieces, std::int64_t num_samples, std::int64_t block_samples);

  std::int64_t num_samples() const { return num_samples_; }
  std::int64_t num_blocks() const { return num_blocks_; }
  /// The most samples of a block.
  std::int64_t block_samples() const { return block_samples_; }
  /// The samples of a block.
  Range samples(std::int64_t block) const;
  std::int64_t block_of(std::int64_t sample) const;
  /// The blocks of consecutive samples alone, which are counted from 0.
  BlockGrid part(Range samples) const;
  /// The short blocks, ascending; at most two per piece.
  std::vector<Short> short_blocks() const;

 private:
  struct Part {
    std::int64_t first_sample, first_block;
    std::int64_t skipped;  ///< records of its first block before the first sample
  };
  const Part& part_of_block(std::int64_t block) const;
  std::int64_t end_of(const Part& part) const;

  std::vector<Part> parts_;
  std::int64_t num_samples_, block_samples_, num_blocks_ = 0;
};

}  // namespace lockstep
