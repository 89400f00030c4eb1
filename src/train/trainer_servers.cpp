// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A trainer's round with servers (section `cluster`): the steps up to the next meeting, but for the update of
// the last one, which is that of any trainer.
#include "core/range.h"
#include "core/trace.h"
#include "train/server_training.h"
#include "train/trainer.h"

namespace lockstep {

/// Returns the samples of the steps before the last. All ranks.
std::int64_t Trainer::run_round() {
  const ServerRound round = servers_->next_round(plan_, step_, cursor_);
  const std::int64_t sent = servers_->bytes_sent();
  std::int64_t samples = 0;
  for (std::int64_t step = round.first; step + 1 < round.last; ++step)
    samples += plan_.batch(servers_->cursor(step)).count;
  float* const variables = context_.variables.trainable_address();
  const auto update = [&](std::int64_t step, std::span<const char> parts) {
    step_ = step;
    cursor_ = servers_->cursor(step);
    if (servers_->drops()) weigh_parts(parts);
    if (step + 1 < round.last) update_on_server();
  };
  const auto changed = [&] {
    context_.variables.device_changed();
    executor_.refresh_weights();
  };
  const auto begin = [&](std::int64_t step) {
    if (schedules_ != nullptr) schedules_->set(step);
  };
  if (servers_->is_alone()) {
    executor_.refresh_weights();
    servers_->work_alone(plan_, reducer_.result(), variables, changed, begin, update);
  } else if (servers_->is_server()) {
    const Traced traced("serving", "workers");
    servers_->serve(reducer_.result(), variables, update);
  } else {
    executor_.refresh_weights();
    servers_->work(plan_, variables, changed, begin);
  }
  round_bytes_ = (servers_->bytes_sent() - sent) / (round.last - round.first);
  step_ = round.last - 1;
  cursor_ = servers_->cursor(step_);
  if (round.last - round.first > 1 && !servers_->is_alone()) {
    const Traced traced("waiting", "for variables");
    reducer_.gather(variables, "variables at a meeting");
    context_.variables.device_changed();
  }
  return samples;
}

/// The update of a step within a round, of what this rank holds.
void Trainer::update_on_server() {
  if (schedules_ != nullptr) schedules_->set(step_);
  regularizer_.add(context_.kernels, context_.pool, context_.lanes, context_.variables, reducer_.result());
  begin_update(true);
  context_.pool.run([&](int thread) { update_rest(thread); });
  context_.variables.device_changed();
  optimizer_.device_changed();
}

/// A mean over the samples of the parts that are there.
void Trainer::weigh_parts(std::span<const char> parts) {
  const std::int64_t count = plan_.batch(cursor_).count;
  const int size = servers_->layout().part_shards;
  std::int64_t there = 0;
  for (std::size_t part = 0; part < parts.size(); ++part)
    for (int shard = 0; parts[part] != 0 && shard < size; ++shard)
      there += plan_.shard_range(count, static_cast<std::int64_t>(part) * size + shard).size();
  if (there == count || there == 0) return;
  const float factor = static_cast<float>(static_cast<double>(count) / static_cast<double>(there));
  context_.pool.run([&](int thread) {
    for_own_parts(thread, [&](Range part) {
      for (std::int64_t i = part.first; i < part.last; ++i) reducer_.result()[i] *= factor;
    });
  });
}

}  // namespace lockstep
