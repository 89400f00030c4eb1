// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <utility>

#include "data/step_plan.h"
#include "optim/optimizer.h"
#include "train/fault_step.h"
#include "train/gating.h"
#include "train/replica_engine.h"
#include "train/server_training.h"
#include "train/trainer_options.h"
#include "train/trainer_parts.h"

namespace lockstep {

namespace {

constexpr const char* kSetGraph =
    "Set optimizer.gating=graph. A hook that needs gradients before the update overrides "
    "Hook::decides_update().";

std::unique_ptr<NoiseScale> noise_scale(const ExecutorContext& context, const ClipRule& rule,
                                        const Executor& executor) {
  if (!rule.noise_scale) return nullptr;
  return std::make_unique<NoiseScale>(context, executor.gradients(), executor.own_shards(), rule.noise_decay);
}

}  // namespace

Trainer::Parts::Parts(const ExecutorContext& run, Communicator& gradients_communicator,
                      Communicator& control_communicator, const Dataset& dataset, const StepPlan& step_plan,
                      Optimizer& optimizer, const TrainerOptions& options)
    : context(run),
      control(control_communicator),
      plan(step_plan),
      part_ranks(options.servers ? std::make_unique<SelfCommunicator>("a part of a batch") : nullptr),
      executor(options.servers ? ServerTraining::part_context(context, options.servers->layout, *part_ranks)
                               : context,
               true, plan.distinct_shard_sizes(), options.branches),
      source(dataset, plan, context.pool.size(), executor.num_slots()),
      regularizer(options.regularization, context.variables, context.device),
      numbers(context.heads, !regularizer.empty(), noise_scale(context, options.clip, executor)),
      sums(context, gradients_communicator, control, plan, options, numbers.leaf_doubles()),
      update(context, control, optimizer, regularizer, sums, options),
      kept(context, numbers.noise_scale()),
      fingerprint(context),
      gating(options.gating) {
  executor.measure(numbers.noise_scale());
  if (options.servers)
    engine =
        std::make_unique<ServerTraining>(*options.servers, ServerTraining::Parts{.context = context,
                                                                                 .control = control,
                                                                                 .part_ranks = *part_ranks,
                                                                                 .plan = plan,
                                                                                 .executor = executor,
                                                                                 .source = source,
                                                                                 .numbers = numbers,
                                                                                 .sums = sums,
                                                                                 .update = update});
  else
    engine = std::make_unique<ReplicaEngine>(ReplicaEngine::Parts{.context = context,
                                                                  .control = control,
                                                                  .plan = plan,
                                                                  .executor = executor,
                                                                  .source = source,
                                                                  .numbers = numbers,
                                                                  .sums = sums,
                                                                  .update = update});
  // Norms that are recorded only, and the noise scale, are measured from gradients alone, also after an
  // update.
  const GatingNeeds needs{.on_host = context.device.is_host(),
                          .scales_loss = options.scales_loss,
                          .regularizes = !regularizer.empty(),
                          .shares_update = sums.ownership() != nullptr,
                          .clip = options.clip,
                          .optimizer = optimizer};
  if (std::string reason = needs.why_graph(); gating != Gating::graph && !reason.empty()) {
    gating = Gating::graph;
    gating_reason = std::move(reason);
  }
  engine->set_gating(gating);
}

Trainer::Trainer(const ExecutorContext& context, Communicator& gradients, Communicator& control,
                 const Dataset& dataset, const StepPlan& plan, Optimizer& optimizer,
                 const TrainerOptions& options)
    : parts_(std::make_unique<Parts>(context, gradients, control, dataset, plan, optimizer, options)) {
  parts_->numbers.declare({.optimizer = optimizer,
                           .schedules = options.schedules,
                           .clip = parts_->update.clip(),
                           .scales_loss = options.scales_loss,
                           .dataset = dataset,
                           .communication_seconds = [this] { return communication_seconds(); },
                           .input_seconds = [this] { return input_seconds(); }});
}

Trainer::~Trainer() = default;

void Trainer::set_position(std::int64_t step, Cursor cursor) {
  parts_->position = {step, cursor};
  parts_->computed = std::nullopt;
  parts_->last = std::nullopt;
  parts_->statistics_fit = false;
  parts_->update.drop();
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
  if (&gradients != parts_->gradients.get())
    throw Error(ErrorKind::usage, "apply_gradients() got the gradients of another trainer", {},
                "Pass what compute_gradients() of the same trainer returned.");
  const std::optional<StepResult> result = parts_->computed;
  apply(true);
  return *result;
}

Gradients& Trainer::gradients() {
  Parts& p = *parts_;
  const std::int64_t step = p.position.step + 1;
  if (!p.computed)
    throw Error(ErrorKind::usage, fmt::format("there are no gradients of step {} yet", step), {},
                "Call compute_gradients() first, in each step.");
  if (p.update.updated() > 0)
    throw Error(ErrorKind::usage,
                fmt::format("the variables are updated with the gradients of step {} already", step), {},
                kSetGraph);
  if (!p.gradients) p.gradients = std::make_unique<Gradients>(p.context, p.sums.gradients(), p.sums.sparse());
  if (!std::exchange(p.shown, true)) {
    p.sums.gather_gradients("gradients of the step");
    p.gradients->fetch(*p.computed);
  }
  return *p.gradients;
}

void Trainer::forget_computed() {
  parts_->shown = false;
  if (std::exchange(parts_->computed, std::nullopt)) parts_->kept.give_back();
}

StepResult Trainer::compute() { return compute(parts_->gating); }

StepResult Trainer::compute(Gating gating) {
  Parts& p = *parts_;
  if (p.update.updated() > 0)
    throw Error(ErrorKind::usage,
                fmt::format("step {} has updated variables and did not end", p.position.step + 1), {},
                "End each step with apply(true), or set optimizer.gating=graph to compute a step again.");
  if (p.computed && !p.engine->repeats())
    throw Error(ErrorKind::usage, fmt::format("the steps up to {} are computed already", p.position.step + 1),
                {}, "With servers (cluster.ps), end each round with apply(true).");
  forget_computed();
  fault_in_step(p.position.step + 1, p.control);
  const std::int64_t earlier = p.engine->run_ahead(p.position);
  const std::int64_t step = p.position.step;
  const Batch batch = p.plan.batch(p.position.cursor);
  p.kept.keep();
  p.update.prepare(step);
  p.engine->compute(p.position, gating);
  p.numbers.gradients_are_summed(p.sums.gradients());
  p.engine->fill_leaves(batch);
  const double penalty = p.update.finish_gradients(step);
  p.sums.say_read_failed(p.engine->could_not_read(batch));
  if (!fault_skips_collective()) p.sums.exchange().reduce("loss of the step");
  if (p.sums.any_read_failed()) {
    p.kept.give_back();
    p.engine->check_reading(batch);
    LOCKSTEP_CHECK(false, "no rank has the error of its samples");
  }
  const Cursor next = p.plan.advance(p.position.cursor);
  const StepResult result{.step = step + 1,
                          .cursor = next,
                          .epoch = batch.epoch,
                          .epoch_ended = next.epoch != batch.epoch,
                          .samples = earlier + batch.count,
                          .learning_rate = p.update.optimizer().learning_rate(step),
                          .loss_scale = p.update.loss_scale(),
                          .finite_gradients = p.update.gradients_are_finite()};
  p.computed = p.numbers.finish(result, p.sums.exchange().total(0), batch.count, penalty);
  return *p.computed;
}

bool Trainer::repeats(std::int64_t step) const {
  return parts_->computed && step == parts_->position.step + 1 && parts_->engine->repeats();
}

std::optional<Batch> Trainer::batch_of(std::int64_t step) const {
  const Parts& p = *parts_;
  if (step == p.position.step + 1) return batch();
  if (step == p.position.step && p.last) return p.last;
  return p.engine->batch_of(step);
}

void Trainer::repeat(StepObserver& observer) {
  LOCKSTEP_CHECK(parts_->engine->repeats(), "the variables are no longer those of the step");
  parts_->engine->repeat(parts_->position, observer);
}

void Trainer::apply(bool update) {
  Parts& p = *parts_;
  const std::int64_t step = p.position.step;
  if (!p.computed)
    throw Error(ErrorKind::usage,
                fmt::format("there are no gradients to apply: step {} is not computed", step + 1), {},
                "Each step is compute_gradients(), then apply_gradients() once.");
  if (!update && p.update.updated() > 0)
    throw Error(
        ErrorKind::usage,
        fmt::format("step {} has updated its variables already: it is too late to leave that out", step + 1),
        {}, kSetGraph);
  p.computed = std::nullopt;
  if (std::exchange(p.shown, false) && update) {
    p.gradients->give_back();
    p.update.measure_again();
  }
  p.update.begin(step, update);
  if (update) {
    p.update.run();
  } else {
    p.kept.give_back_statistics();
    p.update.leave_out();
  }
  p.update.end();
  p.statistics_fit = false;
  p.last = batch();
  p.position = {step + 1, p.plan.advance(p.position.cursor)};
}

void Trainer::wait_for_gradients(const std::string& reason) {
  if (parts_->gating == Gating::graph) return;
  parts_->gating = Gating::graph;
  parts_->gating_reason = reason;
  parts_->engine->set_gating(Gating::graph);
}

void Trainer::set_loss_scale(double scale) {
  parts_->update.set_loss_scale(scale);
  parts_->executor.set_loss_scale(scale);
}

void Trainer::exchange_average() { parts_->update.exchange_average(parts_->position.step); }
void Trainer::set_feed(Feed feed) { parts_->engine->set_feed(std::move(feed)); }
void Trainer::add_observer(StepObserver& observer) { parts_->engine->add_observer(observer); }
void Trainer::remove_observer(StepObserver& observer) { parts_->engine->remove_observer(observer); }

std::int64_t Trainer::global_step() const { return parts_->position.step; }
Cursor Trainer::cursor() const { return parts_->position.cursor; }
Batch Trainer::batch() const { return parts_->plan.batch(parts_->position.cursor); }
const StepPlan& Trainer::plan() const { return parts_->plan; }
const Dataset& Trainer::dataset() const { return parts_->source.dataset(); }
const ExecutorContext& Trainer::context() const { return parts_->context; }
Device& Trainer::device() const { return parts_->context.device; }
bool Trainer::is_computed() const { return parts_->computed.has_value(); }
Gating Trainer::gating() const { return parts_->gating; }
const std::string& Trainer::gating_reason() const { return parts_->gating_reason; }

StepSums& Trainer::sums() { return parts_->sums; }
const StepSums& Trainer::sums() const { return parts_->sums; }
StepNumbers& Trainer::numbers() { return parts_->numbers; }
const StepNumbers& Trainer::numbers() const { return parts_->numbers; }
StepUpdate& Trainer::update() { return parts_->update; }
const StepUpdate& Trainer::update() const { return parts_->update; }
const Executor& Trainer::executor() const { return parts_->executor; }
const ServerTraining* Trainer::servers() const { return parts_->engine->servers(); }
VariableFingerprint& Trainer::fingerprint() { return parts_->fingerprint; }
const StepMetrics& Trainer::metrics() const { return parts_->numbers.metrics(); }

std::size_t Trainer::gradient_bytes() const {
  const Parts& p = *parts_;
  return p.sums.memory_bytes() + p.executor.accumulator_bytes() + p.update.memory_bytes() +
         p.engine->memory_bytes();
}
std::int64_t Trainer::bytes_sent_per_step() const { return parts_->engine->bytes_sent_per_step(); }
double Trainer::communication_seconds() const {
  const Parts& p = *parts_;
  return p.engine->seconds_waited() + p.sums.reducer().seconds_blocked() + p.context.sync.seconds_waited() +
         p.control.seconds_waited();
}
double Trainer::input_seconds() const { return parts_->source.seconds(); }

}  // namespace lockstep
