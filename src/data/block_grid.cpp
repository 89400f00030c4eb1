// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/block_grid.h"

#include <algorithm>

#include "core/error.h"
#include "core/range.h"

namespace lockstep {

BlockGrid::BlockGrid(std::vector<Piece> pieces, std::int64_t num_samples, std::int64_t block_samples)
    : num_samples_(num_samples), block_samples_(block_samples) {
  LOCKSTEP_CHECK(block_samples >= 1 && !pieces.empty() && pieces.front().first_sample == 0);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::int64_t end = i + 1 < pieces.size() ? pieces[i + 1].first_sample : num_samples;
    const std::int64_t skipped = pieces[i].first_record % block_samples;
    LOCKSTEP_CHECK(pieces[i].first_sample < end && pieces[i].first_record >= 0);
    parts_.push_back({pieces[i].first_sample, num_blocks_, skipped});
    num_blocks_ += (skipped + end - pieces[i].first_sample + block_samples - 1) / block_samples;
  }
}

std::int64_t BlockGrid::end_of(const Part& part) const {
  return &part == &parts_.back() ? num_samples_ : (&part)[1].first_sample;
}

const BlockGrid::Part& BlockGrid::part_of_block(std::int64_t block) const {
  return *std::prev(
      std::upper_bound(parts_.begin(), parts_.end(), block,
                       [](std::int64_t wanted, const Part& part) { return wanted < part.first_block; }));
}

Range BlockGrid::samples(std::int64_t block) const {
  LOCKSTEP_DCHECK(block >= 0 && block < num_blocks_);
  const Part& part = part_of_block(block);
  const std::int64_t first = part.first_sample - part.skipped + (block - part.first_block) * block_samples_;
  return {std::max(first, part.first_sample), std::min(first + block_samples_, end_of(part))};
}

std::int64_t BlockGrid::block_of(std::int64_t sample) const {
  LOCKSTEP_DCHECK(sample >= 0 && sample < num_samples_);
  const Part& part = *std::prev(
      std::upper_bound(parts_.begin(), parts_.end(), sample,
                       [](std::int64_t wanted, const Part& p) { return wanted < p.first_sample; }));
  return part.first_block + (sample - part.first_sample + part.skipped) / block_samples_;
}

BlockGrid BlockGrid::part(Range samples) const {
  std::vector<Piece> pieces;
  for (const Part& part : parts_) {
    const std::int64_t first = std::max(part.first_sample, samples.first);
    if (first < std::min(end_of(part), samples.last))
      pieces.push_back({first - samples.first, part.skipped + first - part.first_sample});
  }
  return {std::move(pieces), samples.size(), std::min(block_samples_, samples.size())};
}

std::vector<BlockGrid::Short> BlockGrid::short_blocks() const {
  std::vector<Short> all;
  for (const Part& part : parts_) {
    const std::int64_t last = block_of(end_of(part) - 1);
    for (const std::int64_t block : {part.first_block, last}) {
      const std::int64_t missing = block_samples_ - samples(block).size();
      if (missing > 0 && (all.empty() || all.back().block != block)) all.push_back({block, missing});
    }
  }
  return all;
}

}  // namespace lockstep
