// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/executor.h"

#include <algorithm>
#include <utility>

#include "comm/flight_recorder.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "core/trace.h"
#include "model/moving_statistics.h"
#include "model/scheduled_layer.h"
#include "train/fault_step.h"
#include "train/prepared_calls.h"

namespace lockstep {

namespace {

std::int64_t max_of(std::span<const std::int64_t> sample_counts) {
  return sample_counts.empty() ? 0 : *std::ranges::max_element(sample_counts);
}

bool has_schedule(const Graph::Node& node) {
  auto* const layer = dynamic_cast<ScheduledLayer*>(node.layer.get());
  return layer != nullptr && std::ranges::any_of(layer->numbers(), &LayerNumber::is_scheduled);
}

}  // namespace

Executor::Executor(ExecutorContext context, bool training, std::span<const std::int64_t> sample_counts,
                   std::optional<int> branches)
    : context_(context),
      training_(training),
      calls_(prepared_calls(context, training, sample_counts)),
      memory_(calls_, training, max_of(sample_counts)),
      gradients_(gradient_ranges(context.graph, calls_, context.variables)),
      plan_(plan_spec(choose_workers(branches))),
      branches_(context.device, context.lanes.first(static_cast<std::size_t>(plan_.workers()))),
      sync_points_(make_sync_points()),
      stage_(make_stage(max_of(sample_counts))),
      loss_(context, training, plan_.own(), plan_.num_slots(), max_of(sample_counts)),
      runner_({.context = context_,
               .calls = calls_,
               .memory = memory_,
               .plan = plan_,
               .gradients = gradients_,
               .sync_points = sync_points_,
               .loss = loss_,
               .stage = stage_.get(),
               .training = training}),
      losses_known_(context.device),
      graphs_(context.device, context.stream()),
      layers_change_(std::ranges::any_of(context.graph.nodes(), has_schedule)) {}

Executor::~Executor() = default;

int Executor::choose_workers(std::optional<int> branches) const {
  if (context_.device.is_host()) return context_.pool.size();
  if (!training_) return 1;
  const ExecutionPlan plan(plan_spec(1));
  return choose_branches(plan.own().size(), branch_bytes(plan), branches);
}

// An arena, unless all microshards are in flight in any case; scratch; the sum of its microshards' gradients.
std::size_t Executor::branch_bytes(const ExecutionPlan& plan) const {
  return (plan.synchronises() ? 0 : memory_.total_bytes()) + scratch_bytes() +
         static_cast<std::size_t>(plan.scratch_elements()) * sizeof(float);
}

ExecutionPlan::Spec Executor::plan_spec(int workers) const {
  return {.calls = calls_,
          .gradients = gradients_,
          .training = training_,
          .on_device = !context_.device.is_host(),
          .own = shards_of_rank(context_.sync.rank(), context_.sync.size(), context_.shards),
          .workers = workers};
}

std::vector<std::unique_ptr<SyncPoint>> Executor::make_sync_points() const {
  std::vector<std::unique_ptr<SyncPoint>> points(calls_.operations.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    if (CollectiveLayer* const layer = calls_.operations[i].collective; training_ && layer != nullptr)
      points[i] = std::make_unique<SyncPoint>(context_, *layer, plan_.unit() > 0);
  return points;
}

std::unique_ptr<InputStage> Executor::make_stage(std::int64_t max_samples) const {
  if (context_.device.is_host() || max_samples == 0) return nullptr;
  return std::make_unique<InputStage>(context_.device, plan_.own(), max_samples,
                                      context_.graph.features().num_elements(), context_.heads);
}

std::size_t Executor::scratch_bytes() const {
  std::size_t bytes = context_.kernels.scratch_bytes;
  for (const Graph::Operation& operation : calls_.operations)
    bytes = std::max(bytes, operation.memory.scratch_bytes);
  return bytes;
}

void Executor::attach(GradientReducer& reducer, SparseGradients* sparse, Released released) {
  LOCKSTEP_CHECK(!released || context_.device.is_host());
  released_ = std::move(released);
  ExecutionPlan::Spec spec = plan_spec(plan_.workers());
  spec.buckets = reducer.buckets();
  spec.overlap = reducer.overlaps() || released_;
  plan_ = ExecutionPlan(spec);
  accumulator_ = std::make_unique<GradientAccumulator>(
      context_.kernels, context_.device, context_.pool, reducer, context_.shards,
      plan_.microshards_of_workers(), plan_.scratch_elements());
  runner_.attach(*accumulator_, sparse);
  sparse_ = sparse;
}

void Executor::observe(StepObserver* observer) {
  observer_ = observer;
  runner_.observe(observer);
}

void Executor::refresh_weights() {
  const auto work = [&] {
    context_.pool.run([&](int worker) {
      const Lane& lane = context_.lanes[static_cast<std::size_t>(worker)];
      const auto workers = static_cast<std::size_t>(context_.pool.size());
      for (auto i = static_cast<std::size_t>(worker); i < calls_.operations.size(); i += workers)
        calls_.operations[i].layer->refresh_weights(context_.kernels, lane, context_.variables, training_);
    });
  };
  graphs_.run({.part = -1}, training_ && observer_ == nullptr && !tracing(), work);
}

void Executor::run(const BatchRun& run) {
  run_phases(run, plan_.phases(), nullptr);
  wait_for_losses();
}

void Executor::train(const BatchRun& run, GradientReducer& reducer) {
  LOCKSTEP_CHECK(training_ && accumulator_ != nullptr);
  if (sparse_ != nullptr) sparse_->clear();
  run_phases(run, plan_.phases(), &reducer);
  context_.variables.device_changed();  // running statistics
  if (stage_ != nullptr && run.next != nullptr) stage_->prefetch(run.source, *run.next, run.step + 1);
  wait_for_losses();
}

void Executor::collect_statistics(const BatchRun& run, double kept) {
  LOCKSTEP_CHECK(training_);
  const auto set_kept = [&](std::optional<double> share) {
    for (const Graph::Operation& operation : calls_.operations)
      if (auto* const layer = dynamic_cast<MovingStatistics*>(operation.collective)) layer->set_kept(share);
  };
  set_kept(kept);
  run_phases(run, plan_.forward_totals(), nullptr);
  set_kept(std::nullopt);
  context_.variables.device_changed();
  losses_in_stream();
  wait_for_losses();
}

void Executor::wait_for_losses() {
  if (stage_ == nullptr || plan_.own().size() == 0) return;
  // The device may be waiting for other ranks: the watchdog must know of this wait.
  const RecordedCall waiting("the GPU's work up to the loss", 0);
  losses_known_.wait();
}

// On the CPU a stretch is one phase. In training on a device, it is a recording of phases, with the sums
// inside this rank before and after the exchange of a synchronisation point.
void Executor::run_phases(const BatchRun& run, std::span<const ExecutionPlan::Phase> phases,
                          GradientReducer* reducer) {
  begin(run);
  if (plan_.unit() > 0) run_units(run, phases);
  const bool alone = context_.sync.size() == 1;
  const ExecutionPlan::Phase* exchanged = nullptr;  // its sums over ranks have arrived and are not merged yet
  for (std::size_t first = 0, last = 0; first < phases.size(); first = last) {
    const bool records = reducer != nullptr && may_record(run, phases[first]);
    last = records ? end_of_stretch(run, phases, first) : first + 1;
    const auto stretch = phases.subspan(first, last - first);
    const bool computes_loss = std::ranges::any_of(stretch, &ExecutionPlan::Phase::computes_loss);
    graphs_.run({.part = static_cast<int>(first),
                 .side = stage_ == nullptr ? 0 : stage_->side(),
                 .count = run.batch.count,
                 .loss_scale = computes_loss ? loss_.scale() : 1},
                records, [&] {
                  if (exchanged != nullptr) finish_exchange(*exchanged);
                  for (const ExecutionPlan::Phase& phase : stretch) {
                    if (plan_.unit() == 0) run_microshards(run, phase);
                    combine_gradients(phase);
                    if (phase.sync < 0) continue;
                    sync_point(phase).begin(phase.sync_backward);
                    if (alone) finish_exchange(phase);
                  }
                });
    exchanged = nullptr;
    const ExecutionPlan::Phase& end = stretch.back();
    if (end.losses_known) losses_in_stream();
    for (const ExecutionPlan::Phase& phase : stretch) start_buckets(phase, reducer);
    if (end.sync >= 0 && !alone) {
      sync_point(end).exchange(end.sync_backward);
      exchanged = &end;
      if (context_.device.is_host()) finish_exchange(*std::exchange(exchanged, nullptr));
    }
    if (released_) released_(end.released);
  }
  if (exchanged != nullptr) finish_exchange(*exchanged);
  if (stage_ != nullptr) stage_->used(context_.stream());  // the backward pass reads the number of the step
}

// A stretch ends where the host has something to do: where ranks exchange sums, and where the host waits for
// the losses.
std::size_t Executor::end_of_stretch(const BatchRun& run, std::span<const ExecutionPlan::Phase> phases,
                                     std::size_t first) const {
  const bool alone = context_.sync.size() == 1;
  const auto ends = [&](const ExecutionPlan::Phase& phase) {
    return phase.losses_known || (!alone && (phase.sync >= 0 || phase.buckets.size() > 0));
  };
  std::size_t last = first + 1;
  while (last < phases.size() && !ends(phases[last - 1]) && may_record(run, phases[last])) ++last;
  return last;
}

void Executor::run_microshards(const BatchRun& run, const ExecutionPlan::Phase& phase) {
  branches_.fork();
  for_each_worker([&](int worker) {
    const Range shards = plan_.microshards(worker, phase.which);
    for (std::int64_t shard = shards.first; shard < shards.last; ++shard)
      runner_.run(phase, run, worker, static_cast<int>(shard));
  });
  branches_.join();
}

// On a device, this thread puts the work of all branches into their streams, one branch after the other.
void Executor::for_each_worker(FunctionRef<void(int)> work) {
  if (context_.device.is_host()) return context_.pool.run(work);
  for (int worker = 0; worker < plan_.workers(); ++worker) work(worker);
}

void Executor::begin(const BatchRun& run) {
  run.source.begin(run.batch, plan_.own());
  loss_.begin(run.batch.count);
  if (stage_ != nullptr) stage_->use(run.source, run.batch, run.step, context_.stream());
  runner_.begin(run);
}

void Executor::losses_in_stream() {
  if (stage_ != nullptr) losses_known_.record(context_.stream());
}

// The microshards of all phases, before any sum. Other ranks may run phase after phase: the exchanges are the
// same, in the same order.
void Executor::run_units(const BatchRun& run, std::span<const ExecutionPlan::Phase> phases) {
  context_.pool.run([&](int worker) {
    const Lane& lane = context_.lanes[static_cast<std::size_t>(worker)];
    const Range shards = plan_.microshards(worker, ExecutionPlan::Which::all);
    for (std::int64_t first = shards.first; first < shards.last; first += plan_.unit())
      for (const ExecutionPlan::Phase& phase : phases) {
        const std::int64_t last = first + plan_.unit();
        for (std::int64_t shard = first; shard < last; ++shard)
          runner_.run(phase, run, worker, static_cast<int>(shard));
        if (phase.sync < 0) continue;
        SyncPoint& point = sync_point(phase);
        for (std::int64_t shard = first; shard < last; shard += point.group_size()) {
          const int group = static_cast<int>(shard) / point.group_size();
          phase.sync_backward ? point.sum_backward_group(lane, group) : point.sum_forward_group(lane, group);
        }
      }
  });
}

/// Adds the gradients of this rank's microshards.
void Executor::combine_gradients(const ExecutionPlan::Phase& phase) {
  if (phase.completed().size() == 0) return;
  const Traced traced("backward", "sum of gradients");
  accumulator_->combine(context_.lanes, phase.gradients, phase.base);
}

/// Begins the sums over ranks of the buckets that are complete.
void Executor::start_buckets(const ExecutionPlan::Phase& phase, GradientReducer* reducer) {
  if (phase.buckets.size() == 0) return;
  const Traced traced("backward", "sum of gradients");
  for (std::int64_t bucket = phase.buckets.first; bucket < phase.buckets.last; ++bucket)
    reducer->start(static_cast<int>(bucket));
}

SyncPoint& Executor::sync_point(const ExecutionPlan::Phase& phase) {
  return *sync_points_[static_cast<std::size_t>(phase.sync)];
}

void Executor::finish_exchange(const ExecutionPlan::Phase& phase) {
  const std::span<const double* const> totals = sync_point(phase).finish(phase.sync_backward);
  if (observer_ != nullptr) observer_->synchronised(phase.sync, phase.sync_backward, totals);
}

// A recording repeats the same work of a device each time: nothing may look at it, change it or measure its
// parts. Where ranks agree on the count that divides the loss, the scale of the loss's gradient differs from
// batch to batch. A layer's number that follows a schedule differs from step to step.
bool Executor::may_record(const BatchRun& run, const ExecutionPlan::Phase& phase) const {
  if (loss_.agrees() && phase.computes_loss) return false;
  return training_ && !context_.device.is_host() && !layers_change_ && observer_ == nullptr &&
         run.outputs == nullptr && !faults_planned() && !tracing();
}

}  // namespace lockstep
