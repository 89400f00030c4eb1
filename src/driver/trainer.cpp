// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/trainer.h"

#include <cmath>

namespace lockstep {

Trainer::Trainer(ExecutorContext context, Communicator& gradients, Communicator& control,
                 const Dataset& dataset, const StepPlan& plan, Optimizer& optimizer,
                 const TrainerOptions& options)
    : context_(context),
      plan_(plan),
      optimizer_(optimizer),
      stop_on_nan_(options.stop_on_nan),
      executor_(context, true, plan.distinct_shard_sizes()),
      source_(dataset, plan, context.pool.size(), executor_.num_slots()),
      reducer_(gradients, &context.pool, context.shards, context.variables.trainable_elements(),
               make_buckets(context.variables.trainable_elements(), context.variables.cut_points(),
                            options.bucket_first_bytes, options.bucket_bytes),
               options.reducer),
      sums_(control, context.shards, 0, 2) {
  executor_.attach(reducer_);
}

StepResult Trainer::step() {
  const Batch batch = plan_.batch(cursor_);
  source_.set_batch(batch);
  executor_.refresh_weights();
  auto extent = [&](int shard) { return source_.extent(shard); };
  auto fetch = [&](const Microshard& m, int lane, int slot, float* features) {
    return source_.fetch(m, lane, slot, features);
  };
  auto done = [&](const Microshard& m, const LossSums& sums, const Lane&, const float*) {
    double* leaf = sums_.leaf(m.shard);
    leaf[0] = sums.loss;
    leaf[1] = static_cast<double>(sums.correct);
  };
  executor_.train({.step = step_, .count = batch.count, .extent = extent, .fetch = fetch, .done = done},
                  reducer_);
  reducer_.wait_all();
  sums_.reduce("loss of the step");
  const double count = static_cast<double>(batch.count);
  StepResult result{.step = step_ + 1,
                    .epoch = batch.epoch,
                    .samples = batch.count,
                    .loss = sums_.total(0)[0] / count,
                    .accuracy = sums_.total(0)[1] / count,
                    .learning_rate = optimizer_.learning_rate(step_)};
  if (stop_on_nan_ && !std::isfinite(result.loss))
    throw Error(ErrorKind::numeric,
                fmt::format("the loss of step {} is {}: training has diverged", step_ + 1, result.loss), "",
                "The variables were not updated with it, and the last checkpoint is intact. Try a smaller "
                "learning rate.");
  context_.pool.run([&](int t) {
    const Range part = part_of(context_.variables.trainable_elements(), t, context_.pool.size(), 1024);
    if (part.size() > 0)
      optimizer_.update(context_.kernels, context_.lanes[static_cast<std::size_t>(t)], context_.variables,
                        reducer_.result(), part, step_);
  });
  ++step_;
  cursor_ = plan_.advance(cursor_);
  result.cursor = cursor_;
  result.epoch_ended = cursor_.epoch != batch.epoch;
  return result;
}

}  // namespace lockstep
