// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/microshard_runner.h"

#include <algorithm>

#include "core/range.h"
#include "core/trace.h"
#include "train/fault_step.h"

namespace lockstep {

MicroshardRunner::MicroshardRunner(const Parts& parts)
    : parts_(parts), sharers_(parts.calls.operations.size()) {
  slots_.reserve(static_cast<std::size_t>(parts.plan.num_slots()));
  for (int i = 0; i < parts.plan.num_slots(); ++i)
    slots_.emplace_back(i, parts.context.device, parts.calls, parts.memory);
  for (std::size_t i = 0; i < sharers_.size(); ++i) {
    const Graph::Operation& operation = parts.calls.operations[i];
    if (operation.owner >= 0 && operation.backward)
      sharers_[static_cast<std::size_t>(operation.owner)].push_back(static_cast<int>(i));
  }
  if (parts.training) make_discarded();
}

/// Room for the largest frozen variable of a layer that is called backward.
void MicroshardRunner::make_discarded() {
  std::int64_t largest = 0;
  for (const Graph::Operation& operation : parts_.calls.operations) {
    if (!operation.backward || operation.node < 0) continue;
    const std::span<const Graph::Node> nodes = parts_.context.graph.nodes();
    const Graph::Node* node = &nodes[static_cast<std::size_t>(operation.node)];
    if (node->shared_with >= 0) node = &nodes[static_cast<std::size_t>(node->shared_with)];
    for (int id = node->first_variable; id < node->last_variable; ++id)
      if (const Variable& variable = parts_.context.variables[static_cast<VariableId>(id)]; variable.frozen)
        largest = std::max(largest, variable.shape.num_elements());
  }
  for (int worker = 0; largest > 0 && worker < parts_.plan.workers(); ++worker)
    discarded_.emplace_back(parts_.context.device, static_cast<std::size_t>(largest) * sizeof(float));
}

void MicroshardRunner::begin(const BatchRun& run) {
  look_up_labels(run);
  count_labels(run);
}

// With synchronisation points, a phase with the loss may run itself while the phase with the fetch is
// launched from a recording, which sets nothing here.
void MicroshardRunner::look_up_labels(const BatchRun& run) {
  if (parts_.stage == nullptr || !parts_.plan.synchronises()) return;
  const Range own = parts_.plan.own();
  for (int shard = static_cast<int>(own.first); shard < own.last; ++shard) {
    MicroshardSlot& slot = slot_of(0, shard);
    slot.microshard = run.source.extent(run.batch, shard);
    if (slot.microshard.n == 0) continue;
    slot.labels = parts_.stage->labels(shard);
    slot.host_labels = parts_.stage->host_labels(shard);
  }
}

// The input stage has counted labels with the samples. Without a stage, the fetch counts them, unless ranks
// agree on the counts: then labels are fetched once more, before everything else.
void MicroshardRunner::count_labels(const BatchRun& run) {
  LossStage& loss = parts_.loss;
  const Range own = parts_.plan.own();
  if (parts_.stage != nullptr)
    for (int shard = static_cast<int>(own.first); shard < own.last; ++shard)
      loss.set_counts(shard, parts_.stage->counts(shard));
  if (!loss.agrees()) return;
  if (parts_.stage == nullptr)
    parts_.context.pool.run([&](int worker) {
      const Range shards = parts_.plan.microshards(worker, ExecutionPlan::Which::all);
      for (int shard = static_cast<int>(shards.first); shard < shards.last; ++shard) {
        const Microshard microshard = run.source.extent(run.batch, shard);
        if (microshard.n == 0) continue;
        const MicroshardSlot& slot = slot_of(worker, shard);
        const Labels labels =
            run.source.fetch_labels(run.batch, microshard, {worker, slot.index}, slot.features);
        loss.count(shard, loss.arrange(slot.index, labels, microshard.n), microshard.n);
      }
    });
  loss.agree();
}

void MicroshardRunner::run(const Phase& phase, const BatchRun& run, int worker, int shard) {
  MicroshardSlot& slot = slot_of(worker, shard);
  if (phase.first) slot.microshard = run.source.extent(run.batch, shard);
  Task task{phase,          run, worker, parts_.context.lanes[static_cast<std::size_t>(worker)], slot,
            slot.microshard};
  if (parts_.stage != nullptr) task.lane.step_word = parts_.stage->step_word(shard);
  for (const ExecutionPlan::Action& action : phase.actions) perform(action, task);
  if (phase.gradients.size() > 0) finish_gradients(task);
}

void MicroshardRunner::perform(const ExecutionPlan::Action& action, Task& task) {
  using Act = ExecutionPlan::Act;
  switch (action.act) {
    case Act::fetch:
      return fetch(task);
    case Act::forward_local:
      return forward(action.operation, task, true);
    case Act::forward:
      return forward(action.operation, task, false);
    case Act::loss:
      return loss(task);
    case Act::recompute:
      return recompute(action.operation, task);
    case Act::backward_local:
      return backward_local(action.operation, task);
    case Act::backward:
      return backward(action.operation, task);
    case Act::no_gradient:
      return zero_gradients(action.operation, task);
  }
}

void MicroshardRunner::fetch(Task& task) {
  const Microshard& microshard = task.microshard;
  MicroshardSlot& slot = task.slot;
  if (microshard.n == 0) return;
  if (const InputStage* stage = parts_.stage; stage != nullptr) {
    const std::int64_t values = microshard.n * parts_.context.graph.features().num_elements();
    parts_.context.device.copy(task.lane.stream, slot.features, stage->features(microshard.shard),
                               static_cast<std::size_t>(values) * sizeof(float));
    slot.labels = stage->labels(microshard.shard);
    slot.host_labels = stage->host_labels(microshard.shard);
  } else {
    const Traced traced("input", "fetch");
    const Labels labels =
        task.run.source.fetch(task.run.batch, microshard, {task.worker, slot.index}, slot.features);
    slot.labels = slot.host_labels = parts_.loss.arrange(slot.index, labels, microshard.n);
    parts_.loss.count(microshard.shard, slot.labels, microshard.n);
  }
  if (observer_ != nullptr) observer_->fetched(microshard, task.lane, slot.features);
}

void MicroshardRunner::loss(Task& task) {
  const Traced traced("forward", "loss");
  const Microshard& microshard = task.microshard;
  if (microshard.n == 0) return;
  MicroshardSlot& slot = task.slot;
  parts_.loss.run(task.lane, microshard.shard, microshard.n, slot.labels, slot.places);
  if (parts_.training) fault_in_gradient(parts_.context.device, task.lane, slot.places.front().d_outputs);
  if (observer_ != nullptr) {
    parts_.context.device.synchronize(task.lane.stream);  // the sums are there
    observer_->lost(microshard, task.lane, parts_.loss.results(microshard.shard), slot.places,
                    slot.host_labels);
  }
  if (task.run.outputs != nullptr)
    task.run.outputs->take({microshard, task.lane, slot.outputs, slot.host_labels});
}

void MicroshardRunner::forward(int number, Task& task, bool local) {
  const Graph::Operation& operation = operation_of(number);
  const Traced traced("forward", operation.layer->name().c_str());
  const Pass pass = pass_before_loss(number, task);
  if (local) return operation.collective->forward_local(pass, sync_point(number).forward_leaf(pass.shard));
  if (pass.n == 0) return;
  operation.layer->forward(pass);
  if (observer_ != nullptr) observer_->forward(number, pass);
}

// A collective layer has the totals of the forward pass. The observer has seen the numbers.
void MicroshardRunner::recompute(int number, Task& task) {
  const Graph::Operation& operation = operation_of(number);
  const Traced traced("backward", operation.layer->name().c_str());
  if (task.microshard.n > 0) operation.layer->forward(pass_after_loss(number, task, {}));
}

void MicroshardRunner::backward_local(int number, Task& task) {
  const Graph::Operation& operation = operation_of(number);
  const Traced traced("backward", operation.layer->name().c_str());
  const Pass pass = pass_after_loss(number, task, gradients_of(number, task));
  operation.collective->backward_local(pass, sync_point(number).backward_leaf(pass.shard));
  if (pass.n > 0) measure_gradients(number, pass);
  if (observer_ != nullptr && pass.n > 0) observer_->backward_local(number, pass);
}

void MicroshardRunner::backward(int number, Task& task) {
  const Graph::Operation& operation = operation_of(number);
  const Traced traced("backward", operation.layer->name().c_str());
  if (task.microshard.n == 0) return;
  const Pass pass = pass_after_loss(number, task, gradients_of(number, task));
  operation.layer->backward(pass);
  add_shared_gradients(number, pass, task.slot);
  if (operation.collective == nullptr) measure_gradients(number, pass);
  if (observer_ != nullptr) observer_->backward(number, pass);
  add_contributions(number, task);
}

void MicroshardRunner::zero_gradients(int number, Task& task) {
  const Traced traced("backward", operation_of(number).layer->name().c_str());
  if (task.microshard.n == 0) return;
  const Pass pass = pass_after_loss(number, task, gradients_of(number, task));
  const Range own = own_gradients(number);
  parts_.context.device.zero(task.lane.stream, pass.gradients + (own.first - pass.gradient_base),
                             static_cast<std::size_t>(own.size()) * sizeof(float));
  add_shared_gradients(number, pass, task.slot);
  measure_gradients(number, pass);
}

// The operation's gradients are complete, and still in the cache.
void MicroshardRunner::measure_gradients(int number, const Pass& pass) {
  if (noise_ != nullptr)
    noise_->add(pass.lane, pass.shard, number,
                pass.gradients + (own_gradients(number).first - pass.gradient_base));
}

// Operations that use another one's variables run before it in the backward pass. Their gradients wait in the
// arena until the owner has written its own.
void MicroshardRunner::add_shared_gradients(int owner, const Pass& pass, const MicroshardSlot& slot) {
  for (const int sharer : sharers_[static_cast<std::size_t>(owner)]) {
    const Range own = own_gradients(owner);
    parts_.context.kernels.elementwise.accumulate(
        pass.lane, own.size(), pass.gradients + (own.first - pass.gradient_base),
        address_at<float>(slot.arena, parts_.memory.shared_gradients(sharer)));
  }
}

/// Adds input gradients to those that other readers of the same values have contributed.
void MicroshardRunner::add_contributions(int number, const Task& task) {
  const Graph::Operation& operation = operation_of(number);
  for (std::size_t input = 0; input < operation.inputs.size(); ++input) {
    if (!parts_.memory.contribution(number, static_cast<int>(input)).accumulate) continue;
    const int value_number = operation.inputs[input];
    const Graph::Value& value = parts_.calls.values[static_cast<std::size_t>(value_number)];
    parts_.context.kernels.elementwise.accumulate(
        task.lane, task.microshard.n * value.shape.num_elements(),
        data_at(task.slot.arena, parts_.memory.value_gradient(value_number), value.type),
        task.slot.calls[static_cast<std::size_t>(number)].dx[input]);
  }
}

void MicroshardRunner::finish_gradients(const Task& task) {
  const Phase& phase = task.phase;
  const int shard = task.microshard.shard;
  float* const leaf = accumulator_->leaf(task.worker, shard, phase.gradients, phase.base);
  const auto zero = [&](const Range& range) {
    parts_.context.device.zero(task.lane.stream, leaf + (range.first - phase.gradients.first),
                               static_cast<std::size_t>(range.size()) * sizeof(float));
  };
  if (task.microshard.n == 0) zero(phase.gradients);
  for (const Range& gap : phase.gaps) zero(gap);
  accumulator_->finished(task.lane, task.worker, shard, phase.gradients, phase.base);
}

MicroshardRunner::GradientPlace MicroshardRunner::gradients_of(int number, const Task& task) const {
  const Graph::Operation& operation = operation_of(number);
  if (operation.owner >= 0)
    return {address_at<float>(task.slot.arena, parts_.memory.shared_gradients(number)),
            own_gradients(operation.owner).first};
  const Phase& phase = task.phase;
  if (phase.gradients.size() == 0) return {};
  return {accumulator_->leaf(task.worker, task.microshard.shard, phase.gradients, phase.base),
          phase.gradients.first};
}

Pass MicroshardRunner::pass_of(const MicroshardSlot::Call& call, const Task& task,
                               GradientPlace gradients) const {
  const Microshard& microshard = task.microshard;
  const auto worker = static_cast<std::size_t>(task.worker);
  return {.kernels = parts_.context.kernels,
          .lane = task.lane,
          .variables = parts_.context.variables,
          .training = parts_.training,
          .n = microshard.n,
          .shard = microshard.shard,
          .seed = parts_.context.seed,
          .step = task.run.step,
          .first_sample = microshard.first_sample,
          .inputs = call.inputs.data(),
          .outputs = call.outputs.data(),
          .saved = call.saved,
          .dy = call.dy.data(),
          .dy2 = call.dy2.data(),
          .dx = call.dx.data(),
          .gradients = gradients.address,
          .gradient_base = gradients.base,
          .sparse_gradients = sparse_ == nullptr ? nullptr : sparse_->leaves(microshard.shard),
          .discarded = discarded_.empty() ? nullptr : discarded_[worker].as<float>().data()};
}

}  // namespace lockstep
