// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/small_sum.h"

#include <algorithm>

#include "core/error.h"
#include "core/range.h"

namespace lockstep {

namespace {

// The leaves of `range` in group `g`, counted from the group's first leaf.
Range overlap(const Range& range, int g, int group) {
  const std::int64_t begin = std::int64_t{g} * group;
  const std::int64_t first = std::clamp<std::int64_t>(range.first - begin, 0, group);
  const std::int64_t last = std::clamp<std::int64_t>(range.last - begin, 0, group);
  return {first, std::max(first, last)};
}

std::vector<Range> single_leaves(const Range& leaves) {
  std::vector<Range> all;
  for (std::int64_t leaf = leaves.first; leaf < leaves.last; ++leaf) all.push_back({leaf, leaf + 1});
  if (all.empty()) all.push_back(leaves);
  return all;
}

SmallSum::MergeTree one_by_one(int width, SmallSum::Merge merge) {
  if (!merge)
    merge = [width](double* into, const double* right) {
      for (int i = 0; i < width; ++i) into[i] += right[i];
    };
  return [width, merge](const TreeMerges& tree, double* in, double* out) {
    run_merges(tree, width, in, out, merge);
  };
}

void add_steps(PlannedMerges& plan, const TreePlan& tree, int first_input) {
  tree_combine(tree, [&](int into, int from) { plan.add_step(first_input + into, first_input + from); });
}

}  // namespace

SmallSum::SmallSum(Communicator& communicator, int shards, int group, int width, Merge merge)
    : SmallSum(communicator, shards, group, width, one_by_one(width, std::move(merge)),
               {cpu_device(), nullptr}) {}

SmallSum::SmallSum(Communicator& communicator, int shards, int group, int width, MergeTree merge, Place place)
    : communicator_(communicator),
      place_(place),
      shards_(shards),
      group_(group == 0 ? shards : group),
      width_(width),
      stride_((width + 7) / 8 * 8),
      merge_(std::move(merge)),
      mine_(shards_of_rank(communicator.rank(), communicator.size(), shards)) {
  LOCKSTEP_CHECK(shards >= 1 && width >= 1 && group >= 0 && shards % group_ == 0,
                 "{} shards in groups of {}, width {}", shards, group, width);
  const int totals = shards / group_ == 1 ? 1 : shards / group_ + 2;
  totals_ = Buffer(place.device, static_cast<std::size_t>(totals * stride_) * sizeof(double));
  plan_groups();
  const auto merges_leaves = [](const Group& one) { return !one.local.steps().empty(); };
  if (std::ranges::any_of(groups_, merges_leaves))
    leaves_ = Buffer(place.device, static_cast<std::size_t>(mine_.size() * stride_) * sizeof(double));
  allocate_messages();
}

void SmallSum::plan_groups() {
  const int ranks = communicator_.size();
  const std::vector<Range> ranges = shards_of_all_ranks(ranks, shards_);
  groups_.resize(static_cast<std::size_t>(shards_ / group_));
  // A rank's partials are ordered by group. All ranks send the same number of partials.
  std::vector<int> used(static_cast<std::size_t>(ranks), 0);
  for (int g = 0; g < num_groups(); ++g) {
    Group& one = groups_[static_cast<std::size_t>(g)];
    std::vector<Range> parts;
    for (const Range& range : ranges) parts.push_back(overlap(range, g, group_));
    one.global = TreePlan(group_, parts);
    const Range own = parts[static_cast<std::size_t>(communicator_.rank())];
    one.local = TreePlan(group_, single_leaves(own));
    one.first_leaf = static_cast<int>(std::int64_t{g} * group_ + own.first - mine_.first);
    for (int rank = 0; rank < ranks; ++rank)
      for (int input = one.global.first_input(rank); input < one.global.first_input(rank + 1); ++input) {
        one.ranks.push_back(rank);
        one.slots.push_back(used[static_cast<std::size_t>(rank)]++);
      }
    if (own.size() == group_) {
      one.to_total.add_output(add_leaves(one.to_total, one), std::int64_t{g} * stride_);
      one.to_total.load(place_.device);
    }
  }
  partials_per_rank_ = *std::max_element(used.begin(), used.end());
  if (place_.whole && num_groups() > 1) whole_ = merges_in_order(place_.device, num_groups(), stride_);
}

/// The leaves of the group on this rank and their merges. Returns the number of the first input.
int SmallSum::add_leaves(PlannedMerges& plan, const Group& group) const {
  int first = -1;
  for (int i = 0; i < static_cast<int>(group.local.inputs().size()); ++i) {
    const int input = plan.add_input(std::int64_t{group.first_leaf + i} * stride_);
    if (i == 0) first = input;
  }
  add_steps(plan, group.local, first);
  return first;
}

std::size_t SmallSum::partial_bytes() const {
  return static_cast<std::size_t>(partials_per_rank_) * static_cast<std::size_t>(stride_) * sizeof(double);
}

/// Where the leaves are. Without merges within the rank they are the partials.
void* SmallSum::leaves() const { return leaves_.data() != nullptr ? leaves_.data() : partials(); }

/// Where this rank's partials are, in the memory of the leaves' device.
void* SmallSum::partials() const {
  if (communicator_.size() == 1) return totals_.data();
  if (place_.device.is_host()) return sent_.data();
  return place_.direct != nullptr ? sent_on_device_ : partials_.data();
}

void SmallSum::allocate_messages() {
  message_ = partials_per_rank_ * stride_ + (rank_values_ + 7) / 8 * 8;
  const std::size_t bytes = static_cast<std::size_t>(message_) * sizeof(double);
  sent_ = Buffer::pinned(place_.device, bytes);
  if (communicator_.size() > 1) {
    const std::size_t all = bytes * static_cast<std::size_t>(communicator_.size());
    gathered_ = Buffer::pinned(place_.device, all);
    if (place_.direct != nullptr) {
      sent_on_device_ = place_.direct->message_memory(bytes);
      gathered_on_device_ = place_.direct->message_memory(all);
    } else if (!place_.device.is_host()) {
      partials_ = Buffer(place_.device, partial_bytes());
      uploaded_ = Buffer(place_.device, all);
      gathered_on_device_ = uploaded_.data();
    }
  }
  plan_sums();
}

void SmallSum::plan_sums() {
  own_ = {};
  all_ = {};
  int packed = 0;
  for (int g = 0; g < num_groups(); ++g) {
    const Group& group = groups_[static_cast<std::size_t>(g)];
    const int first_leaf = add_leaves(own_, group);
    for (int k = 0; k < static_cast<int>(group.local.outputs().size()); ++k, ++packed)
      own_.add_output(first_leaf + group.local.output_slot(k), std::int64_t{packed} * stride_);

    int first = -1;
    for (std::size_t i = 0; i < group.slots.size(); ++i) {
      const std::int64_t message = std::int64_t{group.ranks[i]} * message_;
      const int input = all_.add_input(message + std::int64_t{group.slots[i]} * stride_);
      if (i == 0) first = input;
    }
    add_steps(all_, group.global, first);
    all_.add_output(first, std::int64_t{g} * stride_);
  }
  own_.load(place_.device);
  all_.load(place_.device);
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

double* SmallSum::leaf(int shard) {
  LOCKSTEP_DCHECK(mine_.first <= shard && shard < mine_.last);
  return at(leaves(), shard - static_cast<int>(mine_.first));
}

const double* SmallSum::merge_group(int group_index) {
  const Group& group = groups_[static_cast<std::size_t>(group_index)];
  LOCKSTEP_DCHECK(std::ssize(group.local.inputs()) == group_);
  if (leaves() != totals_.data())
    merge_(group.to_total.tree(), static_cast<double*>(leaves()), totals_.as<double>().data());
  return total(group_index);
}

void SmallSum::reduce(const char* what, bool merged) {
  merge_own(merged);
  exchange(what);
  merge_all();
}

void SmallSum::merge_own(bool merged) {
  const bool alone = communicator_.size() == 1;
  if (leaves_.data() == nullptr) {
    // The leaves are the partials.
  } else if (!merged) {
    merge_(own_.tree(), leaves_.as<double>().data(), static_cast<double*>(partials()));
  } else if (!alone) {  // each own group has one partial, its total
    int packed = 0;
    for (int g = 0; g < num_groups(); ++g)
      if (!groups_[static_cast<std::size_t>(g)].local.inputs().empty())
        place_.device.copy(place_.stream, at(partials(), packed++), total(g),
                           static_cast<std::size_t>(width_) * sizeof(double));
  }
  if (!alone && partials_.data() != nullptr)
    place_.device.download(place_.stream, sent_.data(), partials_.data(), partial_bytes());
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

void SmallSum::merge_all() {
  double* totals = totals_.as<double>().data();
  if (communicator_.size() > 1) merge_(all_.tree(), static_cast<double*>(gathered()), totals);
  if (!place_.whole || num_groups() == 1) return;
  place_.device.copy(place_.stream, at(totals, num_groups()), totals,
                     static_cast<std::size_t>(width_) * sizeof(double));
  merge_(whole_.tree(), totals, totals);
}

const double* SmallSum::total(int group_index) const { return at(totals_.data(), group_index); }

const double* SmallSum::whole() const { return num_groups() == 1 ? total(0) : total(num_groups() + 1); }

}  // namespace lockstep
