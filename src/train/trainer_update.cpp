// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The update of a trainer: when it begins (gating), and what each thread does.
#include <algorithm>

#include "core/range.h"
#include "core/trace.h"
#include "train/gating.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

/// 128 KB of the variables: what the optimizer has changed is in the cache when its average is updated.
constexpr std::int64_t kAveragedPiece = std::int64_t{1} << 15;

}  // namespace

// Norms that are recorded only, and the noise scale, are measured from gradients alone, also after an update.
void Trainer::choose_gating(const TrainerOptions& options) {
  gating_ = options.gating;
  if (!servers_) attach_reducer();
  const GatingNeeds needs{.on_host = context_.device.is_host(),
                          .scales_loss = options.scales_loss,
                          .regularizes = !regularizer_.empty(),
                          .shares_update = ownership_ != nullptr,
                          .clip = options.clip,
                          .optimizer = optimizer_};
  if (const std::string reason = needs.why_graph(); !reason.empty()) wait_for_gradients(reason);
}

void Trainer::wait_for_gradients(const std::string& reason) {
  if (gating_ == Gating::graph) return;
  gating_ = Gating::graph;
  gating_reason_ = reason;
  if (!servers_) attach_reducer();
}

void Trainer::attach_reducer() {
  Executor::Released released;
  if (gating_ != Gating::graph && context_.device.is_host())
    released = [this](std::int64_t end) { update_released(end); };
  executor_.attach(reducer_, sparse_.get(), std::move(released));
}

/// Waits until all gradients are summed, and updates variables meanwhile.
void Trainer::finish_sums() {
  if (passes_ != Gating::graph)
    for (int done = 1; done <= static_cast<int>(reducer_.buckets().size()); ++done) {
      {
        const Traced traced("waiting", "for gradients");
        reducer_.wait_for(done);
      }
      update_released(context_.variables.dense_elements());
    }
  passes_ = Gating::graph;
  const Traced traced("waiting", "for gradients");
  reducer_.wait_all();
}

/// No call reads the values of dense variables before `released` any more in this step. Updates those whose
/// sums are there, too. They lie one after the other: buckets are complete in the order of the flat range.
void Trainer::update_released(std::int64_t released) {
  if (passes_ == Gating::graph) return;
  const int done = reducer_.num_done();
  std::int64_t end =
      done == 0 ? 0 : std::min(released, reducer_.buckets()[static_cast<std::size_t>(done) - 1].last);
  if (passes_ == Gating::op) {
    std::int64_t layers = 0;
    for (const GradientRange& layer : executor_.gradients())
      if (layer.range.last <= end) layers = std::max(layers, layer.range.last);
    end = layers;
  }
  if (end <= updated_) return;
  if (updated_ == 0) begin_update(true);
  const Range now{updated_, end};
  updated_ = end;
  context_.pool.run([&](int t) {
    const Range part = part_of(now.size(), t, context_.pool.size(), 1024);
    if (part.size() == 0) return;
    const Traced traced("update", optimizer_.kind());
    update_dense(t, {now.first + part.first, now.first + part.last});
  });
}

void Trainer::begin_update(bool update) {
  weight_ = average_ ? average_->rule().weight(step_ + 1) : std::nullopt;
  if (read_ != nullptr && (update || average_)) {
    read_->stream_wait(context_.lanes.front().stream);
    read_ = nullptr;
  }
  if (average_ && step_ == average_->rule().first) average_->follow(step_);
  if (update) optimizer_.begin_step(step_);
}

void Trainer::for_own_parts(int thread, FunctionRef<void(Range)> then) const {
  for (const Range& own : own_) {
    const Range share = part_of(own.size(), thread, context_.pool.size(), 1024);
    if (share.size() > 0) then({own.first + share.first, own.first + share.last});
  }
}

/// On a thread: each piece of the variables, and while it is in the cache its average. Where ranks share the
/// update, the average needs the variables of all.
void Trainer::update_dense(int thread, Range part) {
  const Lane& lane = context_.lanes[static_cast<std::size_t>(thread)];
  const bool averages = weight_ && !ownership_;
  const std::int64_t piece = averages && context_.device.is_host() ? kAveragedPiece : part.size();
  for (std::int64_t first = part.first; first < part.last; first += piece) {
    const Range now{first, std::min(first + piece, part.last)};
    optimizer_.update(context_.kernels, lane, context_.variables, reducer_.result() + now.first, now);
    if (averages) average_->update(lane, now, *weight_);
  }
}

/// The part of a thread in what compute() has not updated: dense variables, unless it was all of them, and
/// sparse tables.
void Trainer::update_rest(int thread) {
  const Traced traced("update", optimizer_.kind());
  const Lane& lane = context_.lanes[static_cast<std::size_t>(thread)];
  const bool clips = clip_ && clip_->rule().clips() && !optimizer_.measures();
  const auto update = [&](Range part) { update_dense(thread, part); };
  if (clips)
    clip_->clip_dense(thread, reducer_.result(), update);
  else if (updated_ == 0)
    for_own_parts(thread, update);
  for (const VariableId id : context_.variables.sparse()) {
    const Variable& table = context_.variables[id];
    const Range rows = part_of(table.shape[0], thread, context_.pool.size());
    if (clips) clip_->clip_rows(thread, table, *sparse_, rows);
    optimizer_.update_rows(context_.kernels, lane, context_.variables, table,
                           sparse_->total_on_device(table.sparse_index), rows);
    // The average of a row moves also where the row does not.
    const std::int64_t width = table.shape.num_elements() / table.shape[0];
    if (weight_ && !ownership_)
      average_->update(lane, {table.offset + rows.first * width, table.offset + rows.last * width}, *weight_);
  }
}

/// Clips all gradients, and lets the optimizer measure whole variables.
void Trainer::measure_for_update() {
  if (clip_ && clip_->rule().clips())
    context_.pool.run([&](int t) {
      clip_->clip_dense(t, reducer_.result(), [](Range) {});
      for (const VariableId id : context_.variables.sparse()) {
        const Variable& table = context_.variables[id];
        clip_->clip_rows(t, table, *sparse_, part_of(table.shape[0], t, context_.pool.size()));
      }
    });
  optimizer_.measure({context_.variables, context_.kernels, context_.device, context_.pool, context_.lanes},
                     reducer_.result());
  for (const auto& matrices : matrices_) matrices->run();
}

void Trainer::update_average(int thread) {
  const Range part = part_of(context_.variables.trainable_elements(), thread, context_.pool.size(), 1024);
  average_->update(context_.lanes[static_cast<std::size_t>(thread)], part, *weight_);
}

}  // namespace lockstep
