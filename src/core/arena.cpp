// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/arena.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace lockstep {

namespace {

/// Blocks by offset, in groups. A search passes over a group at once if none of its blocks is in use at the
/// same time, or if all of them are and none of the gaps between them is large enough: a net of 10,000 layers
/// has 30,000 blocks and more, and most of them overlap in time.
class PlacedBlocks {
 public:
  /// Places a block at the lowest offset that is free from `first` to `last`, and returns the offset.
  std::size_t place(std::size_t bytes, int first, int last) {
    std::size_t offset = 0;
    for (const Group& group : groups_)
      if (fits_below_or_within(group, bytes, first, last, offset)) break;
    insert({offset, offset + bytes, first, last});
    return offset;
  }

 private:
  static constexpr std::size_t kMostInGroup = 128;

  struct Placed {
    std::size_t begin, end;
    int first, last;
  };
  struct Group {
    std::vector<Placed> blocks;
    std::size_t end = 0, widest_gap = 0;
    int min_first = 0, max_first = 0, min_last = 0, max_last = 0;

    void summarize() {
      end = blocks.front().begin;
      widest_gap = 0;
      min_first = max_first = blocks.front().first;
      min_last = max_last = blocks.front().last;
      for (const Placed& block : blocks) {
        if (block.begin > end) widest_gap = std::max(widest_gap, block.begin - end);
        end = std::max(end, block.end);
        min_first = std::min(min_first, block.first);
        max_first = std::max(max_first, block.first);
        min_last = std::min(min_last, block.last);
        max_last = std::max(max_last, block.last);
      }
    }
  };

  /// By offset; blocks that share one are in use one after the other, and so those of a group are neighbours
  /// in time.
  static bool is_before(const Placed& a, const Placed& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.first < b.first;
  }

  /// True if the block can be at `offset`, below a block of the group; else `offset` becomes the lowest one
  /// above the group.
  static bool fits_below_or_within(const Group& group, std::size_t bytes, int first, int last,
                                   std::size_t& offset) {
    if (group.max_last < first || last < group.min_first) return false;
    const bool all_overlap = group.max_first <= last && first <= group.min_last;
    if (all_overlap && group.widest_gap < bytes) {
      if (offset + bytes <= group.blocks.front().begin) return true;
      offset = std::max(offset, group.end);
      return false;
    }
    for (const Placed& block : group.blocks) {
      if (block.last < first || last < block.first) continue;
      if (offset + bytes <= block.begin) return true;
      offset = std::max(offset, block.end);
    }
    return false;
  }

  void insert(const Placed& block) {
    if (groups_.empty()) groups_.emplace_back();
    auto group = std::upper_bound(
        groups_.begin() + 1, groups_.end(), block,
        [](const Placed& a, const Group& other) { return is_before(a, other.blocks.front()); });
    --group;
    std::vector<Placed>& blocks = group->blocks;
    blocks.insert(std::upper_bound(blocks.begin(), blocks.end(), block, is_before), block);
    if (blocks.size() > kMostInGroup) {
      const auto middle = blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2);
      Group upper{.blocks = {middle, blocks.end()}};
      blocks.erase(middle, blocks.end());
      upper.summarize();
      group->summarize();
      groups_.insert(group + 1, std::move(upper));
    } else {
      group->summarize();
    }
  }

  std::vector<Group> groups_;
};

}  // namespace

ArenaPlan::Block ArenaPlan::add(std::size_t bytes, int first, int last) {
  LOCKSTEP_CHECK(!committed_ && first <= last, "block of {} bytes, times {} to {}", bytes, first, last);
  entries_.push_back({(bytes + kAlignment - 1) / kAlignment * kAlignment, first, last, 0});
  return static_cast<Block>(entries_.size()) - 1;
}

void ArenaPlan::use(Block block, int time) {
  LOCKSTEP_CHECK(!committed_);
  Entry& entry = entries_.at(static_cast<std::size_t>(block));
  entry.first = std::min(entry.first, time);
  entry.last = std::max(entry.last, time);
}

void ArenaPlan::commit() {
  std::vector<std::size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return entries_[a].bytes > entries_[b].bytes; });
  PlacedBlocks placed;
  for (const std::size_t index : order) {
    Entry& entry = entries_[index];
    entry.offset = placed.place(entry.bytes, entry.first, entry.last);
    total_bytes_ = std::max(total_bytes_, entry.offset + entry.bytes);
  }
  committed_ = true;
}

std::size_t ArenaPlan::offset_of(Block block) const {
  LOCKSTEP_CHECK(committed_);
  return entries_.at(static_cast<std::size_t>(block)).offset;
}

std::size_t ArenaPlan::bytes_of(Block block) const {
  return entries_.at(static_cast<std::size_t>(block)).bytes;
}

}  // namespace lockstep
