// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/arena.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace lockstep {

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
  std::vector<std::size_t> placed;  // by offset
  for (std::size_t index : order) {
    Entry& entry = entries_[index];
    std::size_t offset = 0;
    for (std::size_t other : placed) {
      const Entry& neighbour = entries_[other];
      if (neighbour.last < entry.first || entry.last < neighbour.first) continue;
      if (offset + entry.bytes <= neighbour.offset) break;
      offset = std::max(offset, neighbour.offset + neighbour.bytes);
    }
    entry.offset = offset;
    total_bytes_ = std::max(total_bytes_, offset + entry.bytes);
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), index,
                      [&](std::size_t a, std::size_t b) { return entries_[a].offset < entries_[b].offset; }),
                  index);
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
