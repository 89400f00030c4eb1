// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/gradient_accumulator.h"

#include "core/error.h"
#include "core/range.h"

namespace lockstep {

GradientAccumulator::GradientAccumulator(const KernelTable& kernels, Device& device, ThreadPool& pool,
                                         GradientReducer& reducer, int shards,
                                         std::span<const Range> shards_of_workers,
                                         std::int64_t max_phase_elements)
    : kernels_(kernels),
      pool_(pool),
      compress_(reducer.compresses()),
      feedback_(reducer.feedback()),
      workers_(shards_of_workers.size()) {
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    worker.shards = shards_of_workers[w];
    worker.counter = CounterPlan(shards, worker.shards);
    worker.slots.assign(static_cast<std::size_t>(worker.counter.peak_slots()), nullptr);
    worker.is_partial.assign(worker.slots.size(), false);
    for (int result = 0; result < worker.counter.num_results(); ++result)
      input_place_.emplace_back(static_cast<int>(w), result);
  }
  across_ = TreePlan(shards, shards_of_workers);
  LOCKSTEP_CHECK(across_.inputs().size() == input_place_.size() &&
                     static_cast<int>(across_.outputs().size()) == reducer.num_partials(),
                 "{} inputs, {} outputs, {} partials", across_.inputs().size(), across_.outputs().size(),
                 reducer.num_partials());
  // A sum that ends as one of the rank's partials grows in its place; the others in scratch.
  for (int k = 0; k < reducer.num_partials(); ++k) {
    const auto [w, slot] = input_place_[static_cast<std::size_t>(across_.output_slot(k))];
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    worker.slots[static_cast<std::size_t>(slot)] = reducer.partial(k);
    worker.is_partial[static_cast<std::size_t>(slot)] = true;
  }
  for (Worker& worker : workers_)
    for (float*& slot : worker.slots)
      if (slot == nullptr) {
        scratch_.emplace_back(device, static_cast<std::size_t>(max_phase_elements) * sizeof(float));
        slot = static_cast<float*>(scratch_.back().data());
      }
}

float* GradientAccumulator::leaf(int worker_index, std::int64_t shard, Range range, std::int64_t base) const {
  const Worker& worker = workers_[static_cast<std::size_t>(worker_index)];
  return at(worker, worker.counter.leaf_slot(static_cast<int>(shard - worker.shards.first)), range, base);
}

void GradientAccumulator::finished(const Lane& lane, int worker_index, std::int64_t shard, Range range,
                                   std::int64_t base) const {
  const Worker& worker = workers_[static_cast<std::size_t>(worker_index)];
  const auto number = static_cast<int>(shard - worker.shards.first);
  if (feedback_ != nullptr)
    feedback_->round(ErrorFeedback::leaf(static_cast<int>(shard)), range.first, range.size(),
                     at(worker, worker.counter.leaf_slot(number), range, base));
  for (const TreeStep& step : worker.counter.merges_after(number))
    add(lane, range.first, range.size(), at(worker, step.into, range, base),
        at(worker, step.from, range, base), step);
}

void GradientAccumulator::add(const Lane& lane, std::int64_t first, std::int64_t count, float* into,
                              const float* from, const TreeStep& step) const {
  if (feedback_ != nullptr)
    feedback_->add(ErrorFeedback::inner(step.middle), first, count, into, from);
  else if (compress_)
    kernels_.elementwise.accumulate_rounded(lane, count, into, from, step.root);
  else
    kernels_.elementwise.accumulate(lane, count, into, from);
}

void GradientAccumulator::combine(std::span<const Lane> lanes, Range range, std::int64_t base) const {
  if (across_.steps().empty()) return;
  pool_.run([&](int t) {
    const Range slice = part_of(range.size(), t, pool_.size(), 1024);
    if (slice.size() == 0) return;
    for (const TreeStep& step : across_.steps()) {
      const auto [into_worker, into_slot] = input_place_[static_cast<std::size_t>(step.into)];
      const auto [from_worker, from_slot] = input_place_[static_cast<std::size_t>(step.from)];
      add(lanes[static_cast<std::size_t>(t)], range.first + slice.first, slice.size(),
          at(workers_[static_cast<std::size_t>(into_worker)], into_slot, range, base) + slice.first,
          at(workers_[static_cast<std::size_t>(from_worker)], from_slot, range, base) + slice.first, step);
    }
  });
}

std::size_t GradientAccumulator::memory_bytes() const {
  std::size_t sum = 0;
  for (const Buffer& buffer : scratch_) sum += buffer.size_bytes();
  return sum;
}

}  // namespace lockstep
