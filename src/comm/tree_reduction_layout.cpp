// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which rank adds and sends which elements in a TreeReduction. Arithmetic alone.
#include <algorithm>
#include <bit>

#include "comm/tree_reduction.h"
#include "core/range.h"

namespace lockstep {

bool TreeReduction::is_balanced(int ranks, int shards) {
  if (!std::has_single_bit(static_cast<unsigned>(ranks)) || shards < ranks) return false;
  for (int width = 1; width <= ranks; width *= 2)
    for (int rank = 0; rank < ranks; rank += width) {
      const auto first = static_cast<int>(shards_of_rank(rank, ranks, shards).first);
      const auto last = static_cast<int>(shards_of_rank(rank + width - 1, ranks, shards).last);
      if (!is_tree_node(first, last, shards)) return false;
    }
  return true;
}

std::vector<int> TreeReduction::peers_of(int rank, int ranks, int shards) {
  std::vector<int> peers;
  if (is_balanced(ranks, shards))
    for (int distance = 1; distance < ranks; distance *= 2) peers.push_back(rank ^ distance);
  else
    for (int other = 0; other < ranks; ++other)
      if (other != rank) peers.push_back(other);
  return peers;
}

int TreeReduction::position_of(int rank, int ranks, int shards) {
  if (!is_balanced(ranks, shards)) return rank;
  int position = 0;  // the rank's bits in reverse: the nearest neighbour has the other half
  for (int bit = 1; bit < ranks; bit *= 2) position = 2 * position + ((rank & bit) != 0 ? 1 : 0);
  return position;
}

/// The chunk of a rank in the block of a sum's range that begins behind `done` elements.
Range TreeReduction::chunk_of_sum(int rank, std::int64_t offset, std::int64_t count,
                                  std::int64_t done) const {
  const int ranks = communicator_.size();
  const Range part = part_of(std::min(chunk_count_ * ranks, count - done), rank, ranks, kGrain);
  return {offset + done + part.first, offset + done + part.last};
}

/// The chunk of a rank's part that begins behind `done` elements.
Range TreeReduction::chunk_of_part(int rank, std::span<const std::int64_t> limits, std::int64_t done) const {
  const std::int64_t end = limits[static_cast<std::size_t>(rank) + 1];
  const std::int64_t first = std::min(limits[static_cast<std::size_t>(rank)] + done, end);
  return {first, std::min(first + chunk_count_, end)};
}

void TreeReduction::for_node_parts(std::int64_t offset, std::int64_t count,
                                   FunctionRef<void(const NodePart&)> then) const {
  const int ranks = communicator_.size();
  if (ranks == 1 || count == 0) return;
  Levels levels;
  for (int rank = 0; rank < ranks; ++rank) {
    if (balanced_) {
      levels_within(rank, {offset, offset + count}, levels);
      for (const Level& level : levels) then({ErrorFeedback::inner(level.middle), level.keep, rank});
      continue;
    }
    for (const TreeStep& step : plan_.steps())
      for (std::int64_t done = 0; done < count; done += chunk_count_ * ranks)
        then({ErrorFeedback::inner(step.middle), chunk_of_sum(rank, offset, count, done), rank});
  }
}

void TreeReduction::for_node_parts(std::span<const std::int64_t> limits,
                                   FunctionRef<void(const NodePart&)> then) const {
  const int ranks = communicator_.size();
  if (ranks == 1) return;
  Levels levels;
  for (int rank = 0; rank < ranks; ++rank) {
    if (balanced_) {
      levels_between(rank, limits, levels);
      for (const Level& level : levels) then({ErrorFeedback::inner(level.middle), level.keep, rank});
      continue;
    }
    const auto part = static_cast<std::size_t>(rank);
    for (const TreeStep& step : plan_.steps())
      then({ErrorFeedback::inner(step.middle), {limits[part], limits[part + 1]}, rank});
  }
}

// The size of the lower half of a range, a multiple of a cache line.
std::int64_t TreeReduction::halved(std::int64_t count) const {
  return std::min(count, (count / 2 + kGrain - 1) / kGrain * kGrain);
}

void TreeReduction::levels_within(int rank, Range range, Levels& levels) const {
  levels.clear();
  Range mine = range;
  for (int distance = 1; distance < communicator_.size(); distance *= 2) {
    const Range lower{mine.first, mine.first + halved(mine.size())}, upper{lower.last, mine.last};
    const bool keeps_lower = (rank & distance) == 0;
    mine = keeps_lower ? lower : upper;
    levels.push_back({rank ^ distance, mine, keeps_lower ? upper : lower, middle_of(rank, distance)});
  }
}

/// The first leaf of the upper half of the group of 2 `distance` ranks that the rank is in.
int TreeReduction::middle_of(int rank, int distance) const {
  return static_cast<int>(
      shards_of_rank((rank & ~(distance - 1)) | distance, communicator_.size(), shards_).first);
}

void TreeReduction::levels_between(int rank, std::span<const std::int64_t> limits, Levels& levels) const {
  levels.clear();
  std::size_t first = 0, last = limits.size() - 1;
  for (int distance = 1; distance < communicator_.size(); distance *= 2) {
    const std::size_t middle = (first + last) / 2;
    const Range lower{limits[first], limits[middle]}, upper{limits[middle], limits[last]};
    const bool keeps_lower = (rank & distance) == 0;
    (keeps_lower ? last : first) = middle;
    levels.push_back({rank ^ distance, keeps_lower ? lower : upper, keeps_lower ? upper : lower,
                      middle_of(rank, distance)});
  }
}

std::int64_t TreeReduction::bytes_sent(std::int64_t count) const {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  if (ranks == 1) return 0;
  if (balanced_ && count <= kSmallCount)
    return count * sent_element_bytes() * std::countr_zero(static_cast<unsigned>(ranks));
  if (balanced_) return 2 * count * sent_element_bytes() / ranks * (ranks - 1);
  const std::int64_t own = plan_.first_input(rank + 1) - plan_.first_input(rank);
  return (own + 1) * count * sent_element_bytes() / ranks * (ranks - 1);
}

std::int64_t TreeReduction::bytes_reduced(std::span<const std::int64_t> limits) const {
  const int rank = communicator_.rank();
  const Range own = own_part(limits);
  const std::int64_t others = (limits.back() - limits.front() - own.size()) * sent_element_bytes();
  return balanced_ ? others : others * (plan_.first_input(rank + 1) - plan_.first_input(rank));
}

std::int64_t TreeReduction::bytes_gathered(std::span<const std::int64_t> limits) const {
  if (!balanced_) return own_part(limits).size() * std::int64_t{sizeof(float)} * (communicator_.size() - 1);
  // Each exchange sends what has arrived so far.
  std::int64_t count = 0;
  std::size_t first = 0, last = limits.size() - 1;
  for (int distance = 1; distance < communicator_.size(); distance *= 2) {
    const std::size_t middle = (first + last) / 2;
    ((communicator_.rank() & distance) == 0 ? last : first) = middle;
    count += limits[last] - limits[first];
  }
  return count * std::int64_t{sizeof(float)};
}

Range TreeReduction::own_part(std::span<const std::int64_t> limits) const {
  const auto position = static_cast<std::size_t>(
      balanced_ ? position_of(communicator_.rank(), communicator_.size(), shards_) : communicator_.rank());
  return {limits[position], limits[position + 1]};
}

}  // namespace lockstep
