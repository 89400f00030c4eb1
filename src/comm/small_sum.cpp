// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/small_sum.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

namespace {

// The leaves of `range` in group `g`, counted from the group's first leaf.
Range overlap(const Range& range, int g, int group) {
  const std::int64_t begin = std::int64_t{g} * group;
  const std::int64_t first = std::clamp<std::int64_t>(range.first - begin, 0, group);
  const std::int64_t last = std::clamp<std::int64_t>(range.last - begin, 0, group);
  return {first, std::max(first, last)};
}

std::vector<Range> one_by_one(const Range& leaves) {
  std::vector<Range> all;
  for (std::int64_t leaf = leaves.first; leaf < leaves.last; ++leaf) all.push_back({leaf, leaf + 1});
  if (all.empty()) all.push_back(leaves);
  return all;
}

}  // namespace

SmallSum::SmallSum(Communicator& communicator, int shards, int group, int width, Merge merge)
    : SmallSum(communicator, shards, group, width, std::move(merge), {cpu_device(), nullptr}) {}

SmallSum::SmallSum(Communicator& communicator, int shards, int group, int width, Merge merge, Place place)
    : communicator_(communicator),
      place_(place),
      group_(group == 0 ? shards : group),
      width_(width),
      stride_((width + 7) / 8 * 8),
      merge_(std::move(merge)),
      mine_(shards_of_rank(communicator.rank(), communicator.size(), shards)) {
  LOCKSTEP_CHECK(shards >= 1 && width >= 1 && group >= 0 && shards % group_ == 0,
                 "{} shards in groups of {}, width {}", shards, group, width);
  LOCKSTEP_CHECK(merge_ || place.device.is_host(), "values on {} need a merge function", place.device.name());
  const int ranks = communicator.size();
  const std::vector<Range> ranges = shards_of_all_ranks(ranks, shards);
  groups_.resize(static_cast<std::size_t>(shards / group_));
  // A rank's partials are ordered by group. All ranks send the same number of partials.
  std::vector<int> used(static_cast<std::size_t>(ranks), 0);
  for (int g = 0; g < num_groups(); ++g) {
    Group& one = groups_[static_cast<std::size_t>(g)];
    std::vector<Range> parts;
    for (const Range& range : ranges) parts.push_back(overlap(range, g, group_));
    one.global = TreePlan(group_, parts);
    const Range own = parts[static_cast<std::size_t>(communicator.rank())];
    one.local = TreePlan(group_, one_by_one(own));
    one.first_leaf = static_cast<int>(std::int64_t{g} * group_ + own.first - mine_.first);
    for (int rank = 0; rank < ranks; ++rank)
      for (int input = one.global.first_input(rank); input < one.global.first_input(rank + 1); ++input) {
        one.ranks.push_back(rank);
        one.slots.push_back(used[static_cast<std::size_t>(rank)]++);
      }
  }
  partials_per_rank_ = *std::max_element(used.begin(), used.end());
  leaves_ = Buffer(place.device, static_cast<std::size_t>(mine_.size() * stride_) * sizeof(double));
  allocate_messages();
}

void SmallSum::allocate_messages() {
  message_ = partials_per_rank_ * stride_ + (rank_values_ + 7) / 8 * 8;
  const std::size_t bytes = static_cast<std::size_t>(message_) * sizeof(double);
  sent_ = Buffer::pinned(place_.device, bytes);
  if (communicator_.size() == 1) return;
  const std::size_t all = bytes * static_cast<std::size_t>(communicator_.size());
  gathered_ = Buffer::pinned(place_.device, all);
  if (place_.device.is_host()) return;
  if (place_.direct != nullptr) {
    sent_on_device_ = place_.direct->message_memory(bytes);
    gathered_on_device_ = place_.direct->message_memory(all);
  } else {
    uploaded_ = Buffer(place_.device, all);
    gathered_on_device_ = uploaded_.data();
  }
}

void SmallSum::set_rank_values(int count) {
  LOCKSTEP_CHECK(count >= 0);
  rank_values_ = count;
  allocate_messages();
  std::ranges::fill(rank_values(), 0.0);
}

std::span<double> SmallSum::rank_values() {
  return {at(sent_.data(), partials_per_rank_), static_cast<std::size_t>(rank_values_)};
}

std::span<const double> SmallSum::rank_values_of(int rank) const {
  LOCKSTEP_CHECK(0 <= rank && rank < communicator_.size());
  const Buffer& from = communicator_.size() == 1 ? sent_ : gathered_;
  return {at(from.data(), partials_per_rank_) + std::int64_t{rank} * message_,
          static_cast<std::size_t>(rank_values_)};
}

double* SmallSum::at(void* memory, int slot) const {
  return static_cast<double*>(memory) + std::int64_t{slot} * stride_;
}

double* SmallSum::gathered(const Group& group, int input) const {
  const auto i = static_cast<std::size_t>(input);
  return at(merged(), group.slots[i]) + std::int64_t{group.ranks[i]} * message_;
}

double* SmallSum::leaf(int shard) {
  LOCKSTEP_DCHECK(mine_.first <= shard && shard < mine_.last);
  return at(leaves_.data(), shard - static_cast<int>(mine_.first));
}

void SmallSum::merge(double* into, const double* right) const {
  if (merge_) return merge_(into, right);
  for (int i = 0; i < width_; ++i) into[i] += right[i];
}

void SmallSum::exchange(const char* what) {
  if (communicator_.size() == 1) return;
  if (place_.direct != nullptr)
    return place_.direct->allgather(sent_on_device_, sent_.size_bytes(), gathered_on_device_, what);
  place_.device.synchronize(place_.stream);
  communicator_.allgather(sent_.data(), sent_.size_bytes(), gathered_.data(), what);
  if (!place_.device.is_host())
    place_.device.upload(place_.stream, gathered_on_device_, gathered_.data(), gathered_.size_bytes());
}

void SmallSum::merge_leaves(const Group& group) const {
  tree_combine(group.local, [&](int into, int from) {
    merge(at(leaves_.data(), group.first_leaf + into), at(leaves_.data(), group.first_leaf + from));
  });
}

const double* SmallSum::merge_group(int group_index) {
  const Group& group = groups_[static_cast<std::size_t>(group_index)];
  LOCKSTEP_DCHECK(std::ssize(group.local.inputs()) == group_);
  merge_leaves(group);
  return at(leaves_.data(), group.first_leaf);
}

void SmallSum::reduce(const char* what, bool merged) {
  merge_own(merged);
  exchange(what);
  merge_all();
}

void SmallSum::merge_own(bool merged) {
  int packed = 0;
  for (const Group& group : groups_) {
    if (!merged) merge_leaves(group);
    if (communicator_.size() == 1) continue;
    for (int k = 0; k < static_cast<int>(group.local.outputs().size()); ++k, ++packed) {
      const double* partial = at(leaves_.data(), group.first_leaf + group.local.output_slot(k));
      const std::size_t bytes = static_cast<std::size_t>(width_) * sizeof(double);
      if (place_.direct != nullptr)
        place_.device.copy(place_.stream, at(sent_on_device_, packed), partial, bytes);
      else
        place_.device.download(place_.stream, at(sent_.data(), packed), partial, bytes);
    }
  }
}

void SmallSum::merge_all() {
  if (communicator_.size() == 1) return;
  for (const Group& group : groups_)
    tree_combine(group.global,
                 [&](int into, int from) { merge(gathered(group, into), gathered(group, from)); });
}

const double* SmallSum::total(int group_index) const {
  const Group& group = groups_[static_cast<std::size_t>(group_index)];
  if (communicator_.size() == 1) return at(leaves_.data(), group.first_leaf);
  return gathered(group, 0);
}

}  // namespace lockstep
