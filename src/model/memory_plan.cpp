// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>

#include "model/call_times.h"

namespace lockstep {

namespace {

std::size_t bytes_of(const Graph::Value& value, std::int64_t samples) {
  return static_cast<std::size_t>(value.shape.num_elements() * samples) * size_in_bytes(value.type);
}

/// Gradients that lie in one block. The gradient of a sum is also that of each of its terms: they begin as
/// the same numbers, and may share memory as long as none is changed that another one is still read from.
class SharedBlocks {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max();
  /// A gradient, which is complete or begins at `first`, is read until `last`, and changes from `changes` on.
  struct Use {
    int first, last, changes;
  };
  void add(ArenaPlan::Block block, Use use) { uses_[block].push_back(use); }
  bool takes(ArenaPlan::Block block, Use use) const {
    return std::ranges::all_of(uses_.at(block), [&](const Use& other) {
      return other.last <= use.first || (other.last < use.changes && use.last < other.changes);
    });
  }

 private:
  std::map<ArenaPlan::Block, std::vector<Use>> uses_;
};

}  // namespace

// The blocks are collected first. Until the arena is committed, the vectors hold block numbers instead of
// offsets.
MemoryPlan::MemoryPlan(const Graph::Calls& calls, bool training, std::int64_t max_samples) {
  const CallTimes times(calls);
  plan_values(calls, times, training, max_samples);
  loss_gradients_.resize(calls.outputs.size());
  if (training) {
    plan_gradients(calls, times, max_samples);
  } else {
    gradients_ = second_gradients_ = std::vector<std::size_t>(calls.values.size(), kNone);
    for (const Graph::Operation& operation : calls.operations)
      contributions_.emplace_back(operation.inputs.size());
  }
  arena_.commit();
  auto resolve = [&](std::size_t& block) {
    if (block != kNone) block = arena_.offset_of(static_cast<ArenaPlan::Block>(block));
  };
  for (auto* blocks : {&values_, &recomputed_values_, &saved_, &recomputed_saved_, &shared_gradients_,
                       &gradients_, &second_gradients_})
    std::for_each(blocks->begin(), blocks->end(), resolve);
  for (auto& inputs : contributions_)
    for (Contribution& contribution : inputs) resolve(contribution.offset);
  for (Contribution& contribution : loss_gradients_) resolve(contribution.offset);
}

// A value that is recomputed has two blocks. Operations of its segment find it in the second one after the
// loss; all others, which need it then, in the first one.
void MemoryPlan::plan_values(const Graph::Calls& calls, const CallTimes& times, bool training,
                             std::int64_t max_samples) {
  for (std::size_t v = 0; v < calls.values.size(); ++v) {
    const Graph::Value& value = calls.values[v];
    const int first = std::max(0, value.producer);
    const Graph::Operation* producer =
        value.producer < 0 ? nullptr : &calls.operations[static_cast<std::size_t>(value.producer)];
    const ArenaPlan::Block block = arena_.add(bytes_of(value, max_samples), first, first);
    ArenaPlan::Block again = block;
    if (producer != nullptr && producer->recomputed) {
      const int time = times.recomputed(value.producer);
      again = arena_.add(bytes_of(value, max_samples), time, time);
    }
    const auto after_loss = [&](const Graph::Operation& reader) {
      return calls.reads_recomputed(reader, static_cast<int>(v)) ? again : block;
    };
    for (int consumer : value.consumers) {
      arena_.use(block, consumer);
      const Graph::Operation& reader = calls.operations[static_cast<std::size_t>(consumer)];
      if (reader.recomputed) arena_.use(after_loss(reader), times.recomputed(consumer));
      if (reader.backward && reader.traits.backward_reads_input)
        arena_.use(after_loss(reader), times.backward(consumer));
    }
    if (producer != nullptr && producer->backward && producer->traits.backward_reads_output)
      arena_.use(after_loss(*producer), times.backward(value.producer));
    if (std::ranges::find(calls.outputs, static_cast<int>(v)) != calls.outputs.end())
      arena_.use(block, times.loss());
    values_.push_back(static_cast<std::size_t>(block));
    recomputed_values_.push_back(again == block ? kNone : static_cast<std::size_t>(again));
  }
  for (int i = 0; i < static_cast<int>(calls.operations.size()); ++i) {
    const Graph::Operation& operation = calls.operations[static_cast<std::size_t>(i)];
    const std::size_t bytes = training ? operation.memory.saved_bytes : 0;
    const auto add = [&](std::size_t size, int from, int to) {
      return size == 0 ? kNone : static_cast<std::size_t>(arena_.add(size, from, to));
    };
    const int end = operation.backward ? times.backward(i) : i;
    saved_.push_back(add(bytes, i, operation.recomputed ? i : end));
    const int again = times.recomputed(i);
    recomputed_saved_.push_back(operation.recomputed ? add(bytes, again, std::max(again, end)) : kNone);
    const std::size_t shared = static_cast<std::size_t>(operation.shared_elements) * sizeof(float);
    shared_gradients_.push_back(operation.owner < 0 || !operation.backward
                                    ? kNone
                                    : static_cast<std::size_t>(arena_.add(shared, times.backward(i),
                                                                          times.backward(operation.owner))));
  }
}

void MemoryPlan::plan_gradients(const Graph::Calls& calls, const CallTimes& times, std::int64_t max_samples) {
  const int K = static_cast<int>(calls.operations.size());
  gradients_ = second_gradients_ = std::vector<std::size_t>(calls.values.size(), kNone);
  for (const Graph::Operation& operation : calls.operations)
    contributions_.emplace_back(operation.inputs.size());

  // The writers of each value's gradient in the order of the backward pass: the loss first, then consumers
  // from the last to the first. Entries are (operation, input).
  std::vector<std::vector<std::pair<int, int>>> writers_of(calls.values.size());
  for (int i = K - 1; i >= 0; --i) {
    const Graph::Operation& operation = calls.operations[static_cast<std::size_t>(i)];
    if (!operation.backward) continue;
    for (std::size_t input = 0; input < operation.inputs.size(); ++input)
      writers_of[static_cast<std::size_t>(operation.inputs[input])].emplace_back(i, static_cast<int>(input));
  }

  // A value's readers come after it, so the gradients of their outputs have blocks.
  SharedBlocks shared;
  for (std::size_t v = calls.values.size(); v-- > 0;) {
    const Graph::Value& value = calls.values[v];
    if (!value.wants_gradient) continue;
    const std::size_t bytes = bytes_of(value, max_samples);
    const int end = value.producer < 0 ? times.end() : times.backward(value.producer);
    const std::vector<std::pair<int, int>>& writers = writers_of[v];
    const std::int64_t heads = std::ranges::count(calls.outputs, static_cast<int>(v));
    const bool from_loss = heads > 0;
    if (!from_loss && writers.empty()) continue;  // no reader, no gradient
    const int first_time = from_loss ? times.loss() : times.backward(writers.front().first);
    static const LayerTraits kFeatures;
    const LayerTraits& producer =
        value.producer < 0 ? kFeatures : calls.operations[static_cast<std::size_t>(value.producer)].traits;
    const bool pair = writers.size() + (from_loss ? 1U : 0U) == 2 && producer.takes_two_gradients;
    const bool grows = writers.size() + static_cast<std::size_t>(heads) > 1 && !pair;
    const SharedBlocks::Use use{first_time, end,
                                grows && from_loss       ? times.loss()
                                : grows                  ? times.backward(writers[1].first)
                                : producer.overwrites_dy ? end
                                                         : SharedBlocks::kNever};
    const std::size_t sum = from_loss ? kNone : gradient_of_sum(calls, writers.front().first);
    if (sum != kNone && shared.takes(static_cast<ArenaPlan::Block>(sum), use)) {
      gradients_[v] = sum;
      arena_.use(static_cast<ArenaPlan::Block>(sum), end);
    } else {
      gradients_[v] = static_cast<std::size_t>(arena_.add(bytes, first_time, end));
    }
    shared.add(static_cast<ArenaPlan::Block>(gradients_[v]), use);
    if (from_loss) plan_loss_gradients(calls, static_cast<int>(v), bytes);
    for (std::size_t w = 0; w < writers.size(); ++w) {
      Contribution& contribution = contributions_[static_cast<std::size_t>(writers[w].first)]
                                                 [static_cast<std::size_t>(writers[w].second)];
      if (w == 0 && !from_loss) {
        contribution.offset = gradients_[v];
        continue;
      }
      const int time = times.backward(writers[w].first);
      const ArenaPlan::Block block = arena_.add(bytes, time, pair ? end : time);
      contribution = {static_cast<std::size_t>(block), !pair};
      if (pair) second_gradients_[v] = static_cast<std::size_t>(block);
    }
  }
}

/// The gradient of an addition's output; kNone of other operations.
std::size_t MemoryPlan::gradient_of_sum(const Graph::Calls& calls, int operation) const {
  const Graph::Operation& reader = calls.operations[static_cast<std::size_t>(operation)];
  if (reader.traits.fusible != Fusible::addition) return kNone;
  return gradients_[static_cast<std::size_t>(reader.outputs.front())];
}

// The first head that reads a value writes the value's gradient; the others add theirs to it.
void MemoryPlan::plan_loss_gradients(const Graph::Calls& calls, int value, std::size_t bytes) {
  const int K = static_cast<int>(calls.operations.size());
  bool first = true;
  for (std::size_t head = 0; head < calls.outputs.size(); ++head) {
    if (calls.outputs[head] != value) continue;
    loss_gradients_[head] = first ? Contribution{gradients_[static_cast<std::size_t>(value)], false}
                                  : Contribution{static_cast<std::size_t>(arena_.add(bytes, K, K)), true};
    first = false;
  }
}

}  // namespace lockstep
