// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/executor.h"

#include <algorithm>
#include <utility>

#include "comm/flight_recorder.h"
#include "core/trace.h"
#include "train/executor_parts.h"
#include "train/fault_step.h"

namespace lockstep {

namespace {

Graph::Calls prepared(const ExecutorContext& context, bool training,
                      std::span<const std::int64_t> sample_counts) {
  return context.graph.prepare({.kernels = context.kernels,
                                .device = context.device,
                                .lanes = context.pool.size(),
                                .training = training,
                                .sample_counts = sample_counts,
                                .wants_input_gradient = {},
                                .shards = context.shards});
}

}  // namespace

Executor::Executor(ExecutorContext context, bool training, std::span<const std::int64_t> sample_counts)
    : context_(context),
      training_(training),
      own_(shards_of_rank(context.meetings.rank(), context.meetings.size(), context.shards)),
      calls_(prepared(context, training, sample_counts)),
      plan_(calls_, training,
            sample_counts.empty() ? 0 : *std::max_element(sample_counts.begin(), sample_counts.end())),
      losses_known_(context.device),
      graphs_(context.device, context.lanes.front().stream) {
  if (!context.device.is_host() && !sample_counts.empty()) {
    stage_ = std::make_unique<InputStage>(context.device, own_,
                                          *std::max_element(sample_counts.begin(), sample_counts.end()),
                                          context.graph.features().num_elements(), context.heads);
    step_words_ = Buffer::pinned(context.device, 2 * sizeof(std::uint32_t));
    step_word_ = Buffer(context.device, sizeof(std::uint32_t));
  }
  for (const Graph::Operation& operation : calls_.operations) {
    scratch_bytes_ = std::max(scratch_bytes_, operation.memory.scratch_bytes);
    meetings_.emplace_back();
    if (!training || operation.collective == nullptr) continue;
    per_shard_slots_ = true;
    CollectiveLayer& layer = *operation.collective;
    const CollectiveLayer::CollectiveTraits traits = layer.collective_traits();
    const int group = traits.group_size;
    LOCKSTEP_REQUIRE(group == 0 || context.shards % group == 0, ErrorKind::config,
                     "layer {}: group {} does not divide the {} shards; choose a divisor, or 0 for all",
                     layer.name(), group, context.shards);
    // The meetings are the first lane's work, on its stream: on a device there is one lane.
    const Lane& lane = context_.lanes.front();
    const auto sum = [&](CollectiveLayer::Reduction reduction) {
      const auto [width, merge] = reduction;
      const NormKernels& norm = context_.kernels.norm;
      return SmallSum(context_.meetings, context_.shards, group, width,
                      [&norm, &lane, merge = merge, width = width](double* into, const double* right) {
                        if (merge == CollectiveLayer::Merge::moments)
                          norm.merge_moments(lane, (width - 1) / 2, into, right);
                        else
                          norm.merge_sums(lane, width, into, right);
                      },
                      {context_.device, lane.stream, context_.direct_meetings});
    };
    meetings_.back() = std::make_unique<Meeting>(Meeting{sum(traits.forward),
                                                         sum(traits.backward),
                                                         {},
                                                         "batch statistics of " + layer.name(),
                                                         "batch gradient sums of " + layer.name()});
    meetings_.back()->totals.resize(static_cast<std::size_t>(meetings_.back()->forward.num_groups()));
  }
  build_phases();
  const std::int64_t slots = per_shard_slots_ ? own_.size() : context_.pool.size();
  loss_ = std::make_unique<LossStage>(
      context_, training, own_, static_cast<int>(slots),
      sample_counts.empty() ? 0 : *std::max_element(sample_counts.begin(), sample_counts.end()));
  for (std::int64_t s = 0; s < slots; ++s) {
    auto slot = std::make_unique<Slot>();
    slot->index = static_cast<int>(s);
    slot->arena = Buffer(context_.device, plan_.total_bytes());
    slot->features = at<float>(slot->arena, plan_.value(0));
    for (std::size_t head = 0; head < calls_.outputs.size(); ++head) {
      const int value = calls_.outputs[head];
      const MemoryPlan::Contribution& gradient = plan_.loss_gradient(static_cast<int>(head));
      slot->outputs.push_back(at<float>(slot->arena, plan_.value(value)));
      slot->places.push_back(
          {slot->outputs.back(), at<float>(slot->arena, gradient.offset),
           gradient.accumulate ? at<float>(slot->arena, plan_.value_gradient(value)) : nullptr});
    }
    for (std::size_t i = 0; i < calls_.operations.size(); ++i) {
      const Graph::Operation& operation = calls_.operations[i];
      Slot::Call call{};
      for (std::size_t input = 0; input < operation.inputs.size(); ++input) {
        const int value = operation.inputs[input];
        const DType type = calls_.values[static_cast<std::size_t>(value)].type;
        call.inputs.push_back(data_at(slot->arena, plan_.value(value), type));
        call.dx.push_back(data_at(
            slot->arena, plan_.contribution(static_cast<int>(i), static_cast<int>(input)).offset, type));
      }
      for (int output : operation.outputs) {
        const DType type = calls_.values[static_cast<std::size_t>(output)].type;
        call.outputs.push_back(data_at(slot->arena, plan_.value(output), type));
        call.dy.push_back(data_at(slot->arena, plan_.value_gradient(output), type));
        call.dy2.push_back(data_at(slot->arena, plan_.second_gradient(output), type));
      }
      call.saved = at<char>(slot->arena, plan_.saved(static_cast<int>(i)));
      slot->calls.push_back(std::move(call));
    }
    slots_.push_back(std::move(slot));
  }
}

Executor::~Executor() = default;

int Executor::num_slots() const { return static_cast<int>(slots_.size()); }
std::size_t Executor::scratch_bytes() const {
  return std::max(scratch_bytes_, context_.kernels.scratch_bytes);
}
std::size_t Executor::activation_bytes() const { return plan_.total_bytes() * slots_.size(); }

void Executor::attach(GradientReducer& reducer, SparseGradients* sparse) {
  sparse_ = sparse;
  std::int64_t largest = 0;
  for (const Phase& phase : phases_) largest = std::max(largest, phase.gradients.size());
  if (!context_.device.is_host() && per_shard_slots_) cut_behind_loss();
  if (reducer.overlaps() || !context_.device.is_host())
    cut_at_buckets(reducer.overlaps() ? std::span<const Range>(reducer.buckets()) : std::span<const Range>());
  accumulator_ = std::make_unique<GradientAccumulator>(context_.kernels, context_.device, context_.pool,
                                                       reducer, context_.shards, own_, largest);
}

void Executor::refresh_weights() {
  auto work = [&] { repack(); };
  graphs_.run({.part = -1}, training_ && observer_ == nullptr && !tracing(), work);
}

void Executor::repack() {
  context_.pool.run([&](int t) {
    for (std::size_t i = static_cast<std::size_t>(t); i < calls_.operations.size();
         i += static_cast<std::size_t>(context_.pool.size()))
      calls_.operations[i].layer->refresh_weights(
          context_.kernels, context_.lanes[static_cast<std::size_t>(t)], context_.variables, training_);
  });
}

void Executor::run(const BatchView& batch) {
  run_phases(batch, nullptr);
  finish(batch);
}

void Executor::train(const BatchView& batch, GradientReducer& reducer, const BatchView* next) {
  LOCKSTEP_CHECK(training_ && accumulator_ != nullptr);
  if (sparse_ != nullptr) sparse_->clear();
  run_phases(batch, &reducer);
  context_.variables.device_changed();  // running statistics
  if (stage_ != nullptr && next != nullptr) stage_->prefetch(*next);
  finish(batch);
}

void Executor::finish(const BatchView& batch) {
  if (stage_ != nullptr && own_.size() > 0) {
    // Other ranks may be what this waits for: the watchdog shall know of it.
    const RecordedCall waiting("the GPU's work up to the loss", 0);
    losses_known_.wait();
  }
  for (int shard = static_cast<int>(own_.first); shard < own_.last; ++shard)
    batch.done(batch.extent(shard), loss_->results(shard));
}

Executor::Slot& Executor::slot_of(int thread, int shard) const {
  return *slots_[static_cast<std::size_t>(per_shard_slots_ ? shard - own_.first : thread)];
}

void Executor::run_phases(const BatchView& batch, GradientReducer* reducer) {
  int next_bucket = 0;
  loss_->begin(batch.count);
  if (stage_ != nullptr) stage_->use(batch, context_.lanes.front().stream);
  set_step(batch.step);
  look_up_labels(batch);
  count_labels(batch);
  for (std::size_t p = 0; p < phases_.size(); ++p) {
    const Phase& phase = phases_[p];
    auto work = [&] {
      context_.pool.run([&](int thread) {
        Range part = part_of(own_.size(), thread, context_.pool.size());
        if (phase.who == Who::all_but_last) part.last = std::max(part.first, part.last - 1);
        if (phase.who == Who::last) part.first = std::max(part.first, part.last - 1);
        for (std::int64_t i = part.first; i < part.last; ++i)
          run_microshard(phase, batch, thread, static_cast<int>(own_.first + i));
      });
    };
    if (phase.who != Who::all_but_last || own_.size() > 1 || stage_ == nullptr)
      graphs_.run({static_cast<int>(p), stage_ == nullptr ? 0 : stage_->side(), batch.count,
                   computes_loss(phase) ? loss_->scale() : 1},
                  may_record(batch, phase), work);
    if (phase.ends_with_loss && stage_ != nullptr) {
      stage_->used(context_.lanes.front().stream);
      losses_known_.record(context_.lanes.front().stream);
    }
    if (phase.gradients.size() > 0 && phase.who != Who::all_but_last) {
      const Traced traced("backward", "sum of gradients");
      accumulator_->combine(context_.lanes, phase.gradients, phase.base);
      const std::vector<Range>& buckets = reducer->buckets();
      while (next_bucket < static_cast<int>(buckets.size()) &&
             buckets[static_cast<std::size_t>(next_bucket)].last <= phase.gradients.last)
        reducer->start(next_bucket++);
    }
    if (phase.meeting >= 0) meet(phase);
  }
}

bool Executor::computes_loss(const Phase& phase) {
  return std::ranges::find(phase.actions, Act::loss, &Action::act) != phase.actions.end();
}

// What is recorded must be the same each time: nobody looks at it, changes it or wants to see its parts.
// Where the loss depends on the batch by more than its size, so does the scale of its gradient.
bool Executor::may_record(const BatchView& batch, const Phase& phase) const {
  if (loss_->agrees() && computes_loss(phase)) return false;
  return training_ && observer_ == nullptr && !batch.outputs && !faults_planned() && !tracing();
}

// Two places in turn: the host may be one step ahead of the device.
void Executor::set_step(std::int64_t step) {
  if (step_word_.size_bytes() == 0) return;
  std::uint32_t& word = step_words_.as<std::uint32_t>()[static_cast<std::size_t>(step % 2)];
  word = static_cast<std::uint32_t>(step);
  context_.device.upload(context_.lanes.front().stream, step_word_.data(), &word, sizeof word);
}

void Executor::run_microshard(const Phase& phase, const BatchView& batch, int thread, int shard) {
  Slot& slot = slot_of(thread, shard);
  if (phase.first) slot.microshard = batch.extent(shard);
  for (const Action& action : phase.actions) perform(action, batch, slot.microshard, thread, slot, phase);
  if (phase.gradients.size() == 0) return;
  const Lane& lane = context_.lanes[static_cast<std::size_t>(thread)];
  float* leaf = accumulator_->leaf(thread, shard, phase.gradients, phase.base);
  const auto zero = [&](const Range& range) {
    context_.device.zero(lane.stream, leaf + (range.first - phase.gradients.first),
                         static_cast<std::size_t>(range.size()) * sizeof(float));
  };
  if (slot.microshard.n == 0) zero(phase.gradients);
  for (const Range& gap : phase.gaps) zero(gap);
  accumulator_->finished(lane, thread, shard, phase.gradients, phase.base);
}

void Executor::meet(const Phase& phase) {
  Meeting& meeting = *meetings_[static_cast<std::size_t>(phase.meeting)];
  CollectiveLayer& layer = *calls_.operations[static_cast<std::size_t>(phase.meeting)].collective;
  SmallSum& sum = phase.backward_meeting ? meeting.backward : meeting.forward;
  sum.reduce((phase.backward_meeting ? meeting.backward_name : meeting.forward_name).c_str());
  for (int group = 0; group < sum.num_groups(); ++group)
    meeting.totals[static_cast<std::size_t>(group)] = sum.total(group);
  if (observer_ != nullptr) observer_->met(phase.meeting, phase.backward_meeting, meeting.totals);
  const CollectiveLayer::Reduced reduced{context_.kernels, context_.lanes.front(), context_.variables,
                                         meeting.totals};
  if (phase.backward_meeting)
    layer.backward_reduced(reduced);
  else
    layer.forward_reduced(reduced);
}

}  // namespace lockstep
