// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <algorithm>
#include <utility>

#include "comm/flight_recorder.h"
#include "core/range.h"
#include "core/trace.h"
#include "data/sample_stream.h"
#include "optim/grouped_optimizer.h"
#include "train/fault_step.h"

namespace lockstep {

namespace {

GradientReducerOptions on_device(GradientReducerOptions options, const ExecutorContext& context,
                                 const NodeArithmetic& arithmetic) {
  options.device = &context.device;
  options.stream = context.lanes.front().stream;
  options.arithmetic = &arithmetic;
  return options;
}

std::vector<Range> buckets_of(const VariableStore& variables, const TrainerOptions& options) {
  if (options.reducer.ownership) return options.reducer.ownership->buckets();
  return make_buckets(variables.dense_elements(), variables.cut_points(), options.bucket_first_bytes,
                      options.bucket_bytes);
}

constexpr const char* kSetGraph =
    "Set optimizer.gating=graph. A hook that needs gradients before the update overrides "
    "Hook::decides_update().";

}  // namespace

Trainer::Trainer(ExecutorContext context, Communicator& gradients, Communicator& control,
                 const Dataset& dataset, const StepPlan& plan, Optimizer& optimizer,
                 const TrainerOptions& options)
    : context_(context),
      arithmetic_(context.kernels.elementwise),
      control_(control),
      plan_(plan),
      optimizer_(optimizer),
      ownership_(gradients.size() > 1 ? options.reducer.ownership : nullptr),
      own_(ownership_ ? ownership_->parts(gradients.rank())
                      : std::vector<Range>{{0, context.variables.dense_elements()}}),
      servers_(options.servers
                   ? std::make_unique<ServerTraining>(*options.servers, context_, control, arithmetic_)
                   : nullptr),
      executor_(servers_ ? servers_->part_context() : context, true, plan.distinct_shard_sizes()),
      source_(dataset, plan, context.pool.size(), executor_.num_slots()),
      fed_(source_),
      reducer_(gradients, &context.pool, context.shards, context.variables.dense_elements(),
               buckets_of(context.variables, options), on_device(options.reducer, context, arithmetic_)),
      regularizer_(options.regularization, context.variables, context.device),
      report_(context.heads, !regularizer_.empty()),
      noise_(options.clip.noise_scale
                 ? std::make_unique<NoiseScale>(context, executor_.gradients(), executor_.own_shards(),
                                                options.clip.noise_decay)
                 : nullptr),
      parts_(report_.names().size()),
      sums_(control, context.shards, 0, report_.width() + (noise_ ? NoiseScale::kWidth : 0)),
      fingerprint_(context),
      unscaled_(context.device),
      schedules_(options.schedules) {
  if (!context.variables.sparse().empty()) {
    const std::vector<std::int64_t> sizes = plan.distinct_shard_sizes();
    sparse_ = std::make_unique<SparseGradients>(
        DeviceSparseSum::Place{context.kernels, context.device, context.lanes.front().stream}, control,
        context.pool, context.variables, context.shards, *std::max_element(sizes.begin(), sizes.end()),
        options.reducer.compress);
  }
  executor_.measure(noise_.get());
  if (options.clip.clips() || options.clip.measures())
    clip_ = std::make_unique<GradientClip>(
        options.clip,
        UpdateContext{context_.variables, context_.kernels, context_.device, context_.pool, context_.lanes},
        ownership_ ? gradient_parts(*ownership_, control_) : GradientParts{});
  if (options.average)
    average_ = std::make_unique<MovingAverage>(
        *options.average,
        UpdateContext{context_.variables, context_.kernels, context_.device, context_.pool, context_.lanes});
  const UpdateContext update{context_.variables, context_.kernels, context_.device, context_.pool,
                             context_.lanes};
  if (ownership_ && !servers_) optimizer_.share_measures(gradient_parts(*ownership_, control_));
  for (MatrixWork* const work : optimizer_.all_matrix_work(update))
    matrices_.push_back(std::make_unique<MatrixSharing>(*work, update, control));
  if (options.scales_loss)
    not_finite_ = Buffer::pinned(context.device, context.lanes.size() * sizeof(std::int32_t));
  held_ = Buffer(context.device, context.variables.changing_bytes());
  choose_gating(options);
  if (servers_) servers_->attach(executor_, source_, report_.width());
  declare_metrics();
}

void Trainer::declare_metrics() {
  using Use = StepMetrics::Use;
  ids_.loss = metrics_.add("loss");
  ids_.accuracy = metrics_.add("accuracy");
  ids_.parts = metrics_.add(report_.names());
  ids_.learning_rate = metrics_.add("learning_rate");
  ids_.schedules = metrics_.size();
  for (std::size_t i = 1; schedules_ != nullptr && i < schedules_->numbers().size(); ++i)
    metrics_.add(schedules_->numbers()[i]->option());
  if (const auto* const grouped = dynamic_cast<const GroupedOptimizer*>(&optimizer_))
    for (const auto& [name, rule] : grouped->group_rates())
      metrics_.add({.name = name, .read = [this, rule = rule]() -> std::optional<double> {
                      const std::int64_t step = computed_ ? step_ : step_ - 1;
                      return step < 0 ? std::nullopt : std::optional(rule->learning_rate(step));
                    }});
  ids_.loss_scale = scales_loss() ? metrics_.add("loss_scale") : StepMetrics::kNone;
  const auto add_total = [&](const char* name, double ClipTotals::*number, Use use = Use::summary) {
    metrics_.add({.name = name,
                  .use = use,
                  .read = [this, number]() -> std::optional<double> {
                    const std::optional<ClipTotals> totals = clip_totals();
                    return totals ? std::optional((*totals).*number) : std::nullopt;
                  },
                  .may_wait = clip_->must_wait()});
  };
  if (clip_ && clip_->rule().measures())
    add_total("gradient_norm", &ClipTotals::norm, clip_->rule().records() ? Use::summary : Use::hooks);
  if (clip_ && clip_->rule().clips_norm()) add_total("clipped", &ClipTotals::clipped);
  if (noise_) metrics_.add({.name = "noise_scale", .read = [this] { return noise_->value(); }});
  ids_.samples = metrics_.add("samples", Use::hooks);
  metrics_.add({.name = "communication_seconds", .use = Use::hooks, .read = [this] {
                  return std::optional(communication_seconds());
                }});
  metrics_.add({.name = "input_seconds", .use = Use::hooks, .read = [this] {
                  return std::optional(input_seconds());
                }});
  const std::vector<SampleStream*> streams = source_.dataset().streams();
  if (streams.empty()) return;
  metrics_.add({.name = "input/wait_seconds", .read = [streams] {
                  double seconds = 0;
                  for (const SampleStream* stream : streams) seconds += stream->statistics().seconds_waited;
                  return std::optional(seconds);
                }});
  metrics_.add({.name = "input/blocks_ready", .read = [streams] {
                  double blocks = 0;
                  for (const SampleStream* stream : streams)
                    blocks += static_cast<double>(stream->statistics().blocks_ready);
                  return std::optional(blocks);
                }});
  metrics_.add({.name = "input/reader_threads", .read = [streams] {
                  int threads = 0;
                  for (const SampleStream* stream : streams) threads += stream->statistics().threads;
                  return std::optional(static_cast<double>(threads));
                }});
}

void Trainer::publish(const StepResult& result) {
  metrics_.clear();
  metrics_.set(ids_.loss, result.loss);
  metrics_.set(ids_.accuracy, result.accuracy);
  metrics_.set(ids_.learning_rate, result.learning_rate);
  if (ids_.loss_scale != StepMetrics::kNone) metrics_.set(ids_.loss_scale, result.loss_scale);
  metrics_.set(ids_.samples, static_cast<double>(result.samples));
}

StepResult Trainer::minimize() {
  const StepResult result = compute();
  apply(true);
  return result;
}

Gradients& Trainer::compute_gradients() {
  compute(Gating::graph);
  return gradients();
}

StepResult Trainer::apply_gradients(const Gradients& gradients) {
  if (&gradients != gradients_.get())
    throw Error(ErrorKind::usage, "apply_gradients() got the gradients of another trainer", {},
                "Pass what compute_gradients() of the same trainer returned.");
  const std::optional<StepResult> result = computed_;
  apply(true);
  return *result;
}

Gradients& Trainer::gradients() {
  if (!computed_)
    throw Error(ErrorKind::usage, fmt::format("there are no gradients of step {} yet", step_ + 1), {},
                "Call compute_gradients() first, in each step.");
  if (updated_ > 0)
    throw Error(ErrorKind::usage,
                fmt::format("the variables are updated with the gradients of step {} already", step_ + 1), {},
                kSetGraph);
  if (!gradients_) gradients_ = std::make_unique<Gradients>(context_, reducer_.result(), sparse_.get());
  if (!std::exchange(shown_, true)) {
    if (ownership_) reducer_.gather(reducer_.result(), "gradients of the step");
    gradients_->fetch(*computed_);
  }
  return *gradients_;
}

/// Running statistics and the noise scale as before a step that is computed again.
void Trainer::forget_computed() {
  shown_ = false;
  if (!std::exchange(computed_, std::nullopt)) return;
  context_.device.copy(context_.lanes.front().stream, context_.variables.others_address(), held_.data(),
                       held_.size_bytes());
  if (noise_) std::ranges::copy(held_noise_, noise_->state().begin());
}

StepResult Trainer::compute() { return compute(gating_); }

StepResult Trainer::compute(Gating gating) {
  if (updated_ > 0)
    throw Error(ErrorKind::usage, fmt::format("step {} has updated variables and did not end", step_ + 1), {},
                "End each step with apply(true), or set optimizer.gating=graph to compute a step again.");
  if (servers_ && computed_)
    throw Error(ErrorKind::usage, fmt::format("the steps up to {} are computed already", step_ + 1), {},
                "With servers (cluster.ps), end each round with apply(true).");
  forget_computed();
  fault_in_step(step_ + 1, control_);
  const std::int64_t earlier = servers_ ? run_round() : 0;
  const Batch batch = plan_.batch(cursor_);
  if (schedules_ != nullptr) schedules_->set(step_);
  context_.device.copy(context_.lanes.front().stream, held_.data(), context_.variables.others_address(),
                       held_.size_bytes());
  if (noise_) std::ranges::copy(noise_->state(), held_noise_.begin());
  regularizer_.begin(context_.kernels, context_.lanes.front(), context_.variables);
  if (!servers_) {
    {
      const Traced traced("forward", "packing weights");
      executor_.refresh_weights();
    }
    passes_ = gating;
    run_passes(batch);
    finish_sums();
  }
  if (sparse_ != nullptr) sparse_->reduce();
  if (noise_) noise_->finish(reducer_.result());
  fill_leaves(batch);
  unscale();
  const double regularization = regularizer_.add(context_.kernels, context_.pool, context_.lanes,
                                                 context_.variables, reducer_.result());
  if (clip_) clip_->measure(reducer_.result(), sparse_.get());
  if (!fault_skips_collective()) sums_.reduce("loss of the step");
  if (noise_) noise_->update(sums_.total(0) + report_.width(), static_cast<double>(batch.count), loss_scale_);
  const LossReport::Numbers numbers = report_.evaluate(sums_.total(0), parts_, regularization);
  const bool finite = are_finite();
  const Cursor next = plan_.advance(cursor_);
  const StepResult result{.step = step_ + 1,
                          .cursor = next,
                          .epoch = batch.epoch,
                          .epoch_ended = next.epoch != batch.epoch,
                          .samples = earlier + batch.count,
                          .loss = numbers.loss,
                          .accuracy = numbers.accuracy,
                          .learning_rate = optimizer_.learning_rate(step_),
                          .loss_scale = loss_scale_,
                          .finite_gradients = finite};
  publish(result);
  for (std::size_t i = 0; i < parts_.size(); ++i)
    metrics_.set(ids_.parts + static_cast<StepMetrics::Id>(i), parts_[i]);
  for (std::size_t i = 1; schedules_ != nullptr && i < schedules_->numbers().size(); ++i)
    metrics_.set(ids_.schedules + static_cast<StepMetrics::Id>(i - 1), schedules_->numbers()[i]->at(step_));
  computed_ = last_result_ = result;
  return result;
}

std::optional<ClipTotals> Trainer::clip_totals() {
  if (!clip_) return std::nullopt;
  if (!clip_->must_wait()) return clip_->totals();
  const RecordedCall waiting("the norm of the GPU's gradients", 0);
  return clip_->totals();
}

void Trainer::run_passes(const Batch& batch) {
  // A device gets the next batch while it computes this one. A feed changes samples in the step itself.
  const Batch next = plan_.batch(plan_.advance(cursor_));
  fed_.set_step(step_);
  if (fed_.feeds())
    executor_.train({.source = fed_, .batch = batch, .step = step_}, reducer_);
  else
    executor_.train({.source = source_, .batch = batch, .step = step_, .next = &next}, reducer_);
}

void Trainer::fill_leaves(const Batch& batch) {
  if (servers_) {
    const std::span<const double> losses = servers_->share_losses();
    const auto width = static_cast<std::size_t>(report_.width());
    for (auto shard = sums_.shards().first; shard < sums_.shards().last; ++shard)
      std::ranges::copy(losses.subspan(static_cast<std::size_t>(shard) * width, width),
                        sums_.leaf(static_cast<int>(shard)));
    return;
  }
  const Range own = executor_.own_shards();
  for (int shard = static_cast<int>(own.first); shard < own.last; ++shard) {
    const std::span<const HeadSums> heads = executor_.head_sums(shard);
    LossReport::fill(heads, sums_.leaf(shard));
    if (!noise_) continue;
    const double samples = static_cast<double>(plan_.shard_range(batch.count, shard).size());
    noise_->fill(shard, heads.size() == 1 ? heads.front().counts.divisor : samples,
                 sums_.leaf(shard) + report_.width());
  }
}

void Trainer::repeat(StepObserver& observer) {
  LOCKSTEP_CHECK(updated_ == 0 && !servers_, "the variables are no longer those of the step");
  StepObserver* const other = executor_.observer();
  executor_.observe(&observer);
  run_passes(batch());
  reducer_.wait_all();
  if (sparse_ != nullptr) sparse_->reduce();
  executor_.observe(other);
}

void Trainer::set_loss_scale(double scale) {
  LOCKSTEP_CHECK(not_finite_.size_bytes() > 0 || scale == 1, "a loss scale of {}", scale);
  loss_scale_ = scale;
  executor_.set_loss_scale(scale);
}

/// Divides the summed gradients by the loss scale. Does not wait for a device.
void Trainer::unscale() {
  if (not_finite_.size_bytes() == 0) return;
  const Traced traced("update", "taking off the loss scale");
  const std::span<std::int32_t> flags = not_finite_.as<std::int32_t>();
  std::ranges::fill(flags, 0);
  const auto factor = static_cast<float>(1 / loss_scale_);
  context_.pool.run([&](int t) {
    const Lane& lane = context_.lanes[static_cast<std::size_t>(t)];
    std::int32_t* const flag = &flags[static_cast<std::size_t>(t)];
    const UpdateKernels& kernels = context_.kernels.update;
    for_own_parts(t, [&](Range part) {
      kernels.unscale(lane, part.size(), factor, reducer_.result() + part.first, flag);
    });
    for (const VariableId id : context_.variables.sparse()) {
      const Variable& table = context_.variables[id];
      const SparseRows& rows = sparse_->total_on_device(table.sparse_index);
      const Range own = part_of(context_.device.is_host() ? *rows.count : rows.most, t, context_.pool.size());
      kernels.unscale_rows(lane, rows, own.first, own.last, table.shape.num_elements() / table.shape[0],
                           factor, flag);
    }
  });
  unscaled_.record(context_.lanes.front().stream);
}

/// After unscale(): whether all gradients are finite, the same on all ranks. A device may have had other work
/// meanwhile, and the host the exchange of the losses.
bool Trainer::are_finite() {
  if (not_finite_.size_bytes() == 0) return true;
  if (!context_.device.is_host()) {
    const RecordedCall waiting("the GPU's gradients, for the loss scale", 0);
    unscaled_.wait();
  }
  const std::span<const std::int32_t> flags = not_finite_.as<std::int32_t>();
  return agreed(std::ranges::all_of(flags, [](std::int32_t flag) { return flag == 0; }));
}

/// Whether all ranks have finite parts. All ranks have the same sums where they do not share the update.
bool Trainer::agreed(bool finite) {
  if (!ownership_) return finite;
  const char mine = finite ? 1 : 0;
  finite_.resize(static_cast<std::size_t>(ownership_->ranks()));
  control_.allgather(&mine, sizeof mine, finite_.data(), "are the gradients finite");
  return std::ranges::all_of(finite_, [](char rank) { return rank != 0; });
}

void Trainer::apply(bool update) {
  if (!computed_)
    throw Error(ErrorKind::usage,
                fmt::format("there are no gradients to apply: step {} is not computed", step_ + 1), {},
                "Each step is compute_gradients(), then apply_gradients() once.");
  if (!update && updated_ > 0)
    throw Error(
        ErrorKind::usage,
        fmt::format("step {} has updated its variables already: it is too late to leave that out", step_ + 1),
        {}, kSetGraph);
  computed_ = std::nullopt;
  if (std::exchange(shown_, false) && update) {
    gradients_->give_back();
    if (clip_) clip_->measure(reducer_.result(), sparse_.get());
  }
  const Lane& lane = context_.lanes.front();
  if (updated_ == 0) begin_update(update);
  if (update) {
    if (ErrorFeedback* const feedback = reducer_.feedback()) feedback->keep();
    if (optimizer_.measures()) measure_for_update();
    context_.pool.run([&](int t) { update_rest(t); });
    if (ownership_) {
      const Traced traced("waiting", "for variables");
      reducer_.gather(context_.variables.trainable_address(), "variables of the step");
      if (weight_) context_.pool.run([&](int t) { update_average(t); });
    }
  } else {
    context_.device.copy(lane.stream, context_.variables.others_address(), held_.data(), held_.size_bytes());
    // Without a step of the variables: the average still approaches them.
    if (weight_) average_->update(lane, {0, context_.variables.trainable_elements()}, *weight_);
  }
  if (weight_) {
    average_->update_statistics(lane, *weight_);
    average_->device_changed();
  }
  context_.variables.device_changed();
  optimizer_.device_changed();
  fault_in_variables(context_.variables);
  statistics_fit_ = false;
  updated_ = 0;
  ++step_;
  cursor_ = plan_.advance(cursor_);
}

void Trainer::exchange_average() {
  const Lane& lane = context_.lanes.front();
  LOCKSTEP_CHECK(average_ && average_->rule().has_begun(step_), "no average after step {}", step_);
  if (read_ != nullptr) read_->stream_wait(lane.stream);
  average_->exchange();
}

}  // namespace lockstep
