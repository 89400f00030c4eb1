// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/step_update.h"

#include <algorithm>

#include "comm/error_feedback.h"
#include "core/trace.h"
#include "optim/optimizer.h"
#include "optim/regularizer.h"
#include "train/fault_step.h"
#include "train/number_watch.h"
#include "train/run_schedules.h"
#include "train/step_sums.h"
#include "train/trainer_options.h"
#include "train/update_parts.h"

namespace lockstep {

namespace {

/// 128 KB of the variables: what the optimizer has changed is in the cache when its average is updated.
constexpr std::int64_t kAveragedPiece = std::int64_t{1} << 15;

}  // namespace

StepUpdate::StepUpdate(const ExecutorContext& context, Communicator& control, Optimizer& optimizer,
                       Regularizer& regularizer, StepSums& sums, const TrainerOptions& options)
    : context_(context),
      optimizer_(optimizer),
      regularizer_(regularizer),
      sums_(sums),
      schedules_(options.schedules) {
  const Ownership* const ownership = sums.ownership();
  if (options.scales_loss) unscaler_ = std::make_unique<GradientUnscaler>(context, control, sums);
  if (options.clip.clips() || options.clip.measures())
    clip_ = std::make_unique<GradientClip>(
        options.clip, update_context(),
        ownership != nullptr ? gradient_parts(*ownership, control) : GradientParts{});
  watch_ = std::make_unique<NumberWatch>(context, sums, options);
  if (options.average) average_ = std::make_unique<MovingAverage>(*options.average, update_context());
  if (ownership != nullptr && !options.servers)
    optimizer_.share_measures(gradient_parts(*ownership, control));
  for (MatrixWork* const work : optimizer_.matrix_work(update_context()))
    matrices_.push_back(std::make_unique<MatrixSharing>(*work, update_context(), control));
}

StepUpdate::~StepUpdate() = default;

StepState StepUpdate::state(bool now) { return watch_->found(now); }

StepState StepUpdate::state_after(std::int64_t step) { return watch_->found_after(step); }

void StepUpdate::drop() {
  updated_ = 0;
  watch_->forget();
}

void StepUpdate::set_loss_scale(double scale) {
  LOCKSTEP_CHECK(scales_loss() || scale == 1, "a loss scale of {}", scale);
  loss_scale_ = scale;
  if (unscaler_) unscaler_->set_scale(scale);
}

void StepUpdate::set_schedules(std::int64_t step) {
  if (schedules_ != nullptr) schedules_->set(step);
}

void StepUpdate::prepare(std::int64_t step) {
  set_schedules(step);
  begin_average(step);
  regularizer_.begin(context_.kernels, context_.lanes.front(), context_.variables);
}

double StepUpdate::finish_gradients(std::int64_t step) {
  if (unscaler_) unscaler_->run();
  const double penalty = regularizer_.add(context_.kernels, context_.pool, context_.lanes, context_.variables,
                                          sums_.gradients());
  measure_again();
  watch_->look(step + 1);
  return penalty;
}

void StepUpdate::measure_again() {
  if (clip_) clip_->measure(sums_.gradients(), sums_.sparse());
}

void StepUpdate::begin_update(std::int64_t step, bool updates) {
  weight_ = average_ ? average_->next_weight(step + 1) : std::nullopt;
  if (updates || average_) wait_for_reader();
  if (updates)
    optimizer_.begin_step(step);
  else
    optimizer_.leave_out_step(step);
}

void StepUpdate::begin_average(std::int64_t step) {
  if (!average_ || step != average_->progress().first) return;
  wait_for_reader();
  average_->follow(step);
}

void StepUpdate::wait_for_reader() {
  if (read_ == nullptr) return;
  read_->stream_wait(context_.stream());
  read_ = nullptr;
}

void StepUpdate::update_to(std::int64_t end, std::int64_t step) {
  if (end <= updated_) return;
  if (updated_ == 0) begin_update(step, true);
  const Range now{updated_, end};
  updated_ = end;
  context_.pool.run([&](int t) {
    const Range part = part_of(now.size(), t, context_.pool.size(), 1024);
    if (part.size() == 0) return;
    const Traced traced("update", optimizer_.kind());
    update_dense(t, {now.first + part.first, now.first + part.last});
  });
}

void StepUpdate::begin(std::int64_t step, bool updates) {
  if (updated_ == 0) begin_update(step, updates);
}

void StepUpdate::run() {
  if (ErrorFeedback* const feedback = sums_.reducer().feedback()) feedback->keep();
  if (optimizer_.measures()) measure_for_update();
  context_.pool.run([&](int t) { update_rest(t); });
  if (sums_.ownership() == nullptr) return;
  const Traced traced("waiting", "for variables");
  sums_.reducer().gather(context_.variables.trainable_address(), "variables of the step");
  if (weight_) context_.pool.run([&](int t) { update_average(t); });
}

void StepUpdate::leave_out() {
  watch_->forget();
  if (weight_)
    average_->update(context_.lanes.front(), {0, context_.variables.trainable_elements()}, *weight_);
}

void StepUpdate::end() {
  if (weight_) {
    average_->update_statistics(context_.lanes.front(), *weight_);
    average_->device_changed();
  }
  context_.variables.device_changed();
  optimizer_.slots().device_changed();
  fault_in_variables(context_.variables);
  updated_ = 0;
}

void StepUpdate::run_on_server(std::int64_t step) {
  set_schedules(step);
  begin_average(step);
  regularizer_.add(context_.kernels, context_.pool, context_.lanes, context_.variables, sums_.gradients());
  watch_->look_between_meetings(step + 1);
  begin_update(step, true);
  context_.pool.run([&](int thread) { update_rest(thread); });
  context_.variables.device_changed();
  optimizer_.slots().device_changed();
}

void StepUpdate::count_on_worker(std::int64_t step) { optimizer_.begin_step(step); }

/// On a thread: each piece of the variables, and while it is in the cache its average. Where ranks share the
/// update, the average needs the variables of all.
void StepUpdate::update_dense(int thread, Range part) {
  const Lane& lane = context_.lanes[static_cast<std::size_t>(thread)];
  const bool averages = weight_ && sums_.ownership() == nullptr;
  const std::int64_t piece = averages && context_.device.is_host() ? kAveragedPiece : part.size();
  for (std::int64_t first = part.first; first < part.last; first += piece) {
    const Range now{first, std::min(first + piece, part.last)};
    optimizer_.update(context_.kernels, lane, context_.variables, sums_.gradients() + now.first, now);
    if (averages) average_->update(lane, now, *weight_);
  }
}

/// The part of a thread in what update_to() has not updated: dense variables, unless it was all of them, and
/// sparse tables.
void StepUpdate::update_rest(int thread) {
  const Traced traced("update", optimizer_.kind());
  const Lane& lane = context_.lanes[static_cast<std::size_t>(thread)];
  const bool clips = clip_ && clip_->rule().clips() && !optimizer_.measures();
  const auto update = [&](Range part) { update_dense(thread, part); };
  if (clips)
    clip_->clip_dense(thread, sums_.gradients(), update);
  else if (updated_ == 0)
    sums_.for_own_parts(thread, update);
  for (const VariableId id : context_.variables.sparse()) {
    const Variable& table = context_.variables[id];
    const Range rows = part_of(table.shape[0], thread, context_.pool.size());
    if (clips) clip_->clip_rows(thread, table, *sums_.sparse(), rows);
    optimizer_.update_rows(context_.kernels, lane, context_.variables, table,
                           sums_.sparse()->total_on_device(table.sparse_index), rows);
    // The average of a row moves also where the row does not.
    const std::int64_t width = table.shape.num_elements() / table.shape[0];
    if (weight_ && sums_.ownership() == nullptr)
      average_->update(lane, {table.offset + rows.first * width, table.offset + rows.last * width}, *weight_);
  }
}

/// Clips all gradients, and lets the optimizer measure whole variables.
void StepUpdate::measure_for_update() {
  if (clip_ && clip_->rule().clips())
    context_.pool.run([&](int t) {
      clip_->clip_dense(t, sums_.gradients(), [](Range) {});
      for (const VariableId id : context_.variables.sparse()) {
        const Variable& table = context_.variables[id];
        clip_->clip_rows(t, table, *sums_.sparse(), part_of(table.shape[0], t, context_.pool.size()));
      }
    });
  optimizer_.measure(update_context(), sums_.gradients());
  for (const auto& matrices : matrices_) matrices->run();
}

void StepUpdate::update_average(int thread) {
  const Range part = part_of(context_.variables.trainable_elements(), thread, context_.pool.size(), 1024);
  average_->update(context_.lanes[static_cast<std::size_t>(thread)], part, *weight_);
}

void StepUpdate::exchange_average(std::int64_t step) {
  LOCKSTEP_CHECK(average_ && average_->has_begun(step), "no average after step {}", step);
  if (read_ != nullptr) read_->stream_wait(context_.stream());
  average_->exchange();
}

std::int64_t StepUpdate::bytes_sent_per_step() const {
  std::int64_t bytes = 0;
  for (const auto& matrices : matrices_) bytes += matrices->bytes_sent();
  return bytes;
}

std::size_t StepUpdate::memory_bytes() const {
  std::size_t bytes = clip_ ? clip_->memory_bytes() : 0;
  for (const auto& matrices : matrices_) bytes += matrices->memory_bytes();
  return bytes;
}

}  // namespace lockstep
