// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the executor does with one microshard: fetch, one layer's forward or backward call, loss.
#include "core/trace.h"
#include "train/executor_parts.h"
#include "train/fault_step.h"

namespace lockstep {

void Executor::fetch(const BatchView& batch, const Microshard& microshard, int thread, Slot& slot) {
  if (microshard.n == 0) return;
  if (stage_ == nullptr) {
    const Traced traced("input", "fetch");
    slot.labels = slot.host_labels =
        loss_->arrange(slot.index, batch.fetch(microshard, thread, slot.index, slot.features), microshard.n);
    loss_->count(microshard.shard, slot.labels, microshard.n);
    if (observer_ != nullptr)
      observer_->fetched(microshard, context_.lanes[static_cast<std::size_t>(thread)], slot.features);
    return;
  }
  context_.device.copy(
      context_.lanes[static_cast<std::size_t>(thread)].stream, slot.features,
      stage_->features(microshard.shard),
      static_cast<std::size_t>(microshard.n * context_.graph.features().num_elements()) * sizeof(float));
  if (observer_ != nullptr) observer_->fetched(microshard, context_.lanes.front(), slot.features);
  slot.labels = stage_->labels(microshard.shard);
  slot.host_labels = stage_->host_labels(microshard.shard);
}

// Where the loss is behind a meeting, its phase may run by itself while the one that fetches is launched from
// a recording, which sets nothing here.
void Executor::look_up_labels(const BatchView& batch) {
  if (stage_ == nullptr || !per_shard_slots_) return;
  for (int shard = static_cast<int>(own_.first); shard < own_.last; ++shard) {
    Slot& slot = slot_of(0, shard);
    slot.microshard = batch.extent(shard);
    if (slot.microshard.n == 0) continue;
    slot.labels = stage_->labels(shard);
    slot.host_labels = stage_->host_labels(shard);
  }
}

// On a device the stage has done it with the samples. Else, where ranks agree on the counts, labels are
// looked at once more, ahead of all.
void Executor::count_labels(const BatchView& batch) {
  if (stage_ != nullptr)
    for (int shard = static_cast<int>(own_.first); shard < own_.last; ++shard)
      loss_->set_counts(shard, stage_->counts(shard));
  if (!loss_->agrees()) return;
  if (stage_ == nullptr)
    context_.pool.run([&](int thread) {
      const Range part = part_of(own_.size(), thread, context_.pool.size());
      for (std::int64_t i = part.first; i < part.last; ++i) {
        const Microshard microshard = batch.extent(static_cast<int>(own_.first + i));
        if (microshard.n == 0) continue;
        const Slot& slot = slot_of(thread, microshard.shard);
        const Labels labels = batch.labels ? (*batch.labels)(microshard, thread, slot.index)
                                           : batch.fetch(microshard, thread, slot.index, slot.features);
        loss_->count(microshard.shard, loss_->arrange(slot.index, labels, microshard.n), microshard.n);
      }
    });
  loss_->agree();
}

void Executor::loss(const BatchView& batch, const Microshard& microshard, const Lane& lane, Slot& slot) {
  const Traced traced("forward", "loss");
  if (microshard.n == 0) return;
  loss_->run(lane, microshard.shard, microshard.n, slot.labels, slot.places);
  if (training_) fault_in_gradient(context_.device, lane, slot.places.front().d_outputs);
  if (observer_ != nullptr) {
    context_.device.synchronize(lane.stream);  // the sums are there
    observer_->lost(microshard, lane, loss_->results(microshard.shard), slot.places);
  }
  if (batch.outputs) (*batch.outputs)({microshard, lane, slot.outputs, slot.host_labels});
}

void Executor::perform(const Action& action, const BatchView& batch, const Microshard& microshard, int thread,
                       Slot& slot, const Phase& phase) {
  Lane lane = context_.lanes[static_cast<std::size_t>(thread)];
  lane.step_word = static_cast<const std::uint32_t*>(step_word_.data());
  if (action.act == Act::fetch) return fetch(batch, microshard, thread, slot);
  if (action.act == Act::loss) return loss(batch, microshard, lane, slot);
  const Graph::Operation& operation = calls_.operations[static_cast<std::size_t>(action.operation)];
  Slot::Call& call = slot.calls[static_cast<std::size_t>(action.operation)];
  const bool backward = action.act == Act::backward || action.act == Act::backward_local;
  const Traced traced(backward ? "backward" : "forward", operation.layer->name().c_str());
  const Gradients gradients = backward || action.act == Act::no_gradient
                                  ? gradients_of(action.operation, phase, thread, microshard, slot)
                                  : Gradients{};
  const Pass pass{context_.kernels,
                  lane,
                  context_.variables,
                  training_,
                  microshard.n,
                  microshard.shard,
                  context_.seed,
                  batch.step,
                  microshard.first_sample,
                  call.inputs.data(),
                  call.outputs.data(),
                  call.saved,
                  call.dy.data(),
                  call.dy2.data(),
                  call.dx.data(),
                  gradients.address,
                  gradients.base,
                  sparse_ == nullptr ? nullptr : sparse_->leaves(microshard.shard)};
  Meeting* meeting = meetings_[static_cast<std::size_t>(action.operation)].get();
  switch (action.act) {
    case Act::forward_local:
      operation.collective->forward_local(pass, meeting->forward.leaf(microshard.shard));
      return;
    case Act::backward_local:
      operation.collective->backward_local(pass, meeting->backward.leaf(microshard.shard));
      if (observer_ != nullptr && microshard.n > 0) observer_->backward_local(action.operation, pass);
      return;
    case Act::forward:
      if (microshard.n == 0) return;
      operation.layer->forward(pass);
      if (observer_ != nullptr) observer_->forward(action.operation, pass);
      return;
    default:
      break;
  }
  if (microshard.n == 0) return;
  if (action.act == Act::backward) {
    operation.layer->backward(pass);
  } else {
    const Range own = gradient_range(operation);
    if (own.size() > 0)
      context_.device.zero(lane.stream, pass.gradients + (own.first - pass.gradient_base),
                           static_cast<std::size_t>(own.size()) * sizeof(float));
  }
  add_shared_gradients(action.operation, pass, slot);
  if (action.act != Act::backward) return;
  if (observer_ != nullptr) observer_->backward(action.operation, pass);
  for (std::size_t input = 0; input < operation.inputs.size(); ++input) {
    if (!plan_.contribution(action.operation, static_cast<int>(input)).accumulate) continue;
    const int number = operation.inputs[input];
    const Graph::Value& value = calls_.values[static_cast<std::size_t>(number)];
    context_.kernels.elementwise.accumulate(lane, microshard.n * value.shape.num_elements(),
                                            data_at(slot.arena, plan_.value_gradient(number), value.type),
                                            call.dx[input]);
  }
}

/// Where a call's gradients of variables go. An operation that uses another one's variables comes earlier in
/// the backward pass than that one: what it gives waits in the arena.
Executor::Gradients Executor::gradients_of(int number, const Phase& phase, int thread,
                                           const Microshard& microshard, const Slot& slot) const {
  const Graph::Operation& operation = calls_.operations[static_cast<std::size_t>(number)];
  if (operation.owner >= 0)
    return {at<float>(slot.arena, plan_.shared_gradients(number)),
            gradient_range(calls_.operations[static_cast<std::size_t>(operation.owner)]).first};
  if (phase.gradients.size() == 0) return {nullptr, 0};
  return {accumulator_->leaf(thread, microshard.shard, phase.gradients, phase.base), phase.gradients.first};
}

/// The flat range of an operation's own trainable variables.
Range Executor::gradient_range(const Graph::Operation& operation) const {
  Range range{0, 0};
  if (operation.node < 0) return range;
  const Graph::Node& node = context_.graph.nodes()[static_cast<std::size_t>(operation.node)];
  for (int id = node.last_variable - 1; id >= node.first_variable; --id) {
    const Variable& variable = context_.variables[static_cast<VariableId>(id)];
    if (!variable.trainable || variable.sparse_index >= 0) continue;
    if (range.size() == 0) range.first = variable.offset;
    range.last = variable.offset + VariableStore::padded(variable.shape.num_elements());
  }
  return range;
}

void Executor::add_shared_gradients(int owner, const Pass& pass, const Slot& slot) {
  for (std::size_t i = 0; i < calls_.operations.size(); ++i) {
    const Graph::Operation& sharer = calls_.operations[i];
    if (sharer.owner != owner || !sharer.backward) continue;
    const Range own = gradient_range(calls_.operations[static_cast<std::size_t>(owner)]);
    context_.kernels.elementwise.accumulate(
        pass.lane, own.size(), pass.gradients + (own.first - pass.gradient_base),
        at<float>(slot.arena, plan_.shared_gradients(static_cast<int>(i))));
  }
}

}  // namespace lockstep
