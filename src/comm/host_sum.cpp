// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/host_sum.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "comm/node_arithmetic.h"
#include "comm/tree_reduction.h"
#include "comm/vector_add.h"
#include "core/error.h"
#include "core/range.h"

namespace lockstep {

namespace {

constexpr std::int64_t kGrain = 16;                         // parts begin and end at cache lines
constexpr std::int64_t kBlock = 2048;                       // elements that are added at a time: 8 KB
constexpr std::int64_t kPoolCount = std::int64_t{1} << 15;  // below this count one thread is faster
constexpr int kSpins = 2000;  // some 20 us, before the core is given to another process

void pause_core(int turn) {
  if (turn >= kSpins) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

/// At the begin of each segment, in cache lines of their own; written by the rank that owns the segment.
struct HostSum::Counters {
  struct alignas(64) Line {
    std::atomic<std::uint64_t> sums;
  };
  Line stages[3];
};

std::unique_ptr<HostSum> HostSum::create(Communicator& communicator, ThreadPool* pool, int shards,
                                         std::int64_t num_elements, bool compress, std::string& reason) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  if (communicator.split_by_host("ranks of this host")->size() != communicator.size()) {
    // Alike on all ranks: if the ranks are on several hosts, each of them has others elsewhere.
    reason = "the ranks are on several hosts";
    return nullptr;
  }
  std::unique_ptr<HostSum> sum(new HostSum(communicator, pool, shards, num_elements, compress));
  const auto partials =
      std::max(1, sum->plan_.first_input(sum->rank_ + 1) - sum->plan_.first_input(sum->rank_));
  sum->memory_ = HostMemory::create(
      communicator, sizeof(Counters) + static_cast<std::size_t>(partials * sum->stride_) * sizeof(float),
      reason);
  if (!sum->memory_) return nullptr;
  return sum;
}

HostSum::HostSum(Communicator& communicator, ThreadPool* pool, int shards, std::int64_t num_elements,
                 bool compress)
    : communicator_(communicator),
      pool_(pool != nullptr && pool->size() > 1 ? pool : nullptr),
      rank_(communicator.rank()),
      shards_(shards),
      compress_(compress),
      stride_((num_elements + kGrain - 1) / kGrain * kGrain),
      plan_(shards, shards_of_all_ranks(communicator.size(), shards)) {
  for (int rank = 0; rank < communicator.size(); ++rank)
    rank_of_input_.resize(static_cast<std::size_t>(plan_.first_input(rank + 1)), rank);
  plan_steps();
  const int threads = pool_ != nullptr ? pool_->size() : 1;
  scratch_.resize(static_cast<std::size_t>(threads * scratch_blocks_ * kBlock));
  sums_.reserve(64);
}

// The tree's merges with a place for each result: partials are never overwritten, because they are memory of
// another rank; the total goes to the result.
void HostSum::plan_steps() {
  const auto inputs = static_cast<int>(plan_.inputs().size());
  std::vector<int> place(static_cast<std::size_t>(inputs)), free;
  for (int i = 0; i < inputs; ++i) place[static_cast<std::size_t>(i)] = i;
  for (const TreeStep& step : plan_.steps()) {
    int &into = place[static_cast<std::size_t>(step.into)], from = place[static_cast<std::size_t>(step.from)];
    const int a = into;
    if (into < inputs) {
      if (free.empty()) free.push_back(inputs + scratch_blocks_++);
      into = free.back();
      free.pop_back();
    }
    steps_.push_back({a, from, into, step.root, step.middle});
    if (from >= inputs) free.push_back(from);
  }
}

HostSum::Counters& HostSum::counters(int rank) const {
  return *std::launder(reinterpret_cast<Counters*>(memory_->segment(rank)));
}

float* HostSum::result_of(int rank) const {
  return reinterpret_cast<float*>(memory_->segment(rank) + sizeof(Counters));
}

float* HostSum::input(int number) const {
  const int rank = rank_of_input_[static_cast<std::size_t>(number)];
  return result_of(rank) + (number - plan_.first_input(rank)) * stride_;
}

Range HostSum::part(const Sum& sum, int rank) const {
  const int ranks = communicator_.size();
  if (!sum.limits.empty()) {
    const auto position = static_cast<std::size_t>(TreeReduction::position_of(rank, ranks, shards_));
    return {sum.limits[position], sum.limits[position + 1]};
  }
  const Range part = part_of(sum.range.size(), rank, ranks, kGrain);
  return {sum.range.first + part.first, sum.range.first + part.last};
}

void HostSum::tell(Stage stage, int sums) {
  counters(rank_).stages[static_cast<int>(stage)].sums.store(before_ + static_cast<std::uint64_t>(sums),
                                                             std::memory_order_release);
}

bool HostSum::all_reached(Stage stage, int sums) const {
  const std::uint64_t wanted = before_ + static_cast<std::uint64_t>(sums);
  for (int rank = 0; rank < communicator_.size(); ++rank)
    if (counters(rank).stages[static_cast<int>(stage)].sums.load(std::memory_order_acquire) < wanted)
      return false;
  return true;
}

void HostSum::start(Range range, std::span<const std::int64_t> limits, const char* what) {
  sums_.push_back({range, limits, what});
  tell(Stage::offered, static_cast<int>(sums_.size()));
  while (advance()) {
  }
}

// Does one piece of work for which the other ranks are ready. Returns false if there is none.
bool HostSum::advance() {
  if (summed_ < static_cast<int>(sums_.size()) && all_reached(Stage::offered, summed_ + 1)) {
    const Sum& sum = sums_[static_cast<std::size_t>(summed_)];
    communicator_.in_shared_memory(
        static_cast<std::size_t>(bytes_read(sum.range, sum.limits)), [&] { add_own_part(sum); }, sum.what);
    tell(Stage::summed, ++summed_);
    return true;
  }
  if (taken_ == summed_) return false;
  const Sum& sum = sums_[static_cast<std::size_t>(taken_)];
  if (sum.limits.empty()) {
    if (!all_reached(Stage::summed, taken_ + 1)) return false;
    communicator_.in_shared_memory(
        0, [&] { take_other_parts(sum); }, sum.what);
  }
  tell(Stage::taken, ++taken_);
  return true;
}

void HostSum::finish(int count) {
  while (taken_ < count) {
    if (advance()) continue;
    const Sum& next = sums_[static_cast<std::size_t>(taken_)];
    const Stage stage = summed_ > taken_ ? Stage::summed : Stage::offered;
    communicator_.in_shared_memory(
        0,
        [&] {
          for (int turn = 0; !all_reached(stage, taken_ + 1); ++turn) pause_core(turn);
        },
        next.what);
  }
}

void HostSum::finish_all() {
  const auto count = static_cast<int>(sums_.size());
  finish(count);
  const auto read_no_more = [&] {
    return all_reached(Stage::summed, count) && all_reached(Stage::taken, count);
  };
  if (!read_no_more())
    communicator_.in_shared_memory(
        0,
        [&] {
          for (int turn = 0; !read_no_more(); ++turn) pause_core(turn);
        },
        "gradients are taken");
  before_ += static_cast<std::uint64_t>(count);
  sums_.clear();
  summed_ = taken_ = 0;
}

void HostSum::in_parts(Range range, FunctionRef<void(int thread, Range)> work) {
  if (pool_ == nullptr || range.size() < kPoolCount) return work(0, range);
  pool_->run([&](int thread) {
    const Range part = part_of(range.size(), thread, pool_->size(), kGrain);
    work(thread, {range.first + part.first, range.first + part.last});
  });
}

void HostSum::add_own_part(const Sum& sum) {
  in_parts(part(sum, rank_), [&](int thread, Range range) {
    for (std::int64_t first = range.first; first < range.last; first += kBlock)
      add_block(thread, {first, std::min(first + kBlock, range.last)});
  });
}

void HostSum::add_block(int thread, Range block) {
  const auto inputs = static_cast<int>(plan_.inputs().size());
  const std::int64_t count = block.size();
  float* const total = result() + block.first;
  const auto at = [&](int place) {
    return place < inputs ? input(place) + block.first
                          : scratch_.data() + (thread * scratch_blocks_ + place - inputs) * kBlock;
  };
  for (const Step& step : steps_) {
    const bool last = &step == &steps_.back();
    add(last ? total : at(step.to), at(step.a), at(step.b), block, step);
  }
  if (!steps_.empty()) return;
  const float* const only = at(plan_.output_slot(0));  // one shard
  if (only != total) std::memcpy(total, only, static_cast<std::size_t>(count) * sizeof(float));
  if (compress_) host_arithmetic().round(nullptr, count, total);
}

void HostSum::for_node_parts(Range range, std::span<const std::int64_t> limits,
                             FunctionRef<void(const NodePart&)> then) const {
  for (int rank = 0; rank < communicator_.size(); ++rank)
    for (const Step& step : steps_)
      then({ErrorFeedback::inner(step.middle), part({range, limits, ""}, rank), rank});
}

void HostSum::add(float* to, const float* a, const float* b, Range elements, const Step& step) const {
  const std::int64_t count = elements.size();
  if (!compress_) return vector_sum(to, a, b, count);
  // Addition commutes: the operand that is in place already stays there.
  if (to == b) std::swap(a, b);
  if (to != a) std::memcpy(to, a, static_cast<std::size_t>(count) * sizeof(float));
  if (feedback_ != nullptr)
    feedback_->add(ErrorFeedback::inner(step.middle), elements.first, count, to, b);
  else
    host_arithmetic().add_rounded(nullptr, count, to, b, step.total);
}

void HostSum::take_other_parts(const Sum& sum) {
  in_parts(sum.range, [&](int, Range range) {
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      if (rank == rank_) continue;
      const Range theirs = part(sum, rank);
      const std::int64_t first = std::max(theirs.first, range.first),
                         last = std::min(theirs.last, range.last);
      if (first < last)
        std::memcpy(result() + first, result_of(rank) + first,
                    static_cast<std::size_t>(last - first) * sizeof(float));
    }
  });
}

std::int64_t HostSum::bytes_read(Range range, std::span<const std::int64_t> limits) const {
  const std::int64_t own = part({range, limits, ""}, rank_).size();
  const auto inputs = static_cast<std::int64_t>(plan_.inputs().size());
  const std::int64_t mine = plan_.first_input(rank_ + 1) - plan_.first_input(rank_);
  const std::int64_t taken = limits.empty() ? range.size() - own : 0;
  return (own * (inputs - mine) + taken) * std::int64_t{sizeof(float)};
}

}  // namespace lockstep
