// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "step_parts.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/timer.h"
#include "driver/batch_source.h"

namespace lockstep {

namespace {

/// Seconds between marks, per part.
class Clock {
 public:
  void begin() { timer_.restart(), last_ = 0; }
  void mark(std::vector<double>& part, double now) {
    part.push_back(now - last_);
    last_ = now;
  }
  void mark(std::vector<double>& part) { mark(part, timer_.seconds()); }
  double now() const { return timer_.seconds(); }

 private:
  Timer timer_;
  double last_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

StepParts measure_parts(ExecutorContext context, Communicator& gradients, Communicator& control,
                        const Dataset& dataset, const StepPlan& plan, const Optimizer& optimizer,
                        Workers& workers, int steps) {
  Executor executor(context, true, plan.distinct_shard_sizes());
  BatchSource source(dataset, plan, context.pool.size(), executor.num_slots());
  const std::int64_t elements = context.variables.trainable_elements();
  GradientReducer reducer(
      gradients, &context.pool, context.shards, elements,
      make_buckets(elements, context.variables.cut_points(), std::int64_t{1} << 20, std::int64_t{25} << 20));
  SmallSum sums(control, context.shards, 0, 2);
  executor.attach(reducer);
  workers.grow_scratch(executor.scratch_bytes());

  std::vector<double> refresh, forward, backward, reduction, loss, update;
  Clock clock;
  std::atomic<double> forward_end{0};
  Cursor cursor;
  for (int step = 0; step < steps; ++step, cursor = plan.advance(cursor)) {
    const Batch batch = plan.batch(cursor);
    source.set_batch(batch);
    clock.begin();
    executor.refresh_weights();
    clock.mark(refresh);
    auto extent = [&](int shard) { return source.extent(shard); };
    auto fetch = [&](const Microshard& m, int lane, int slot, float* features) {
      return source.fetch(m, lane, slot, features);
    };
    auto done = [&](const Microshard& m, const LossSums& s, const Lane&, const float*) {
      sums.leaf(m.shard)[0] = s.loss;
      sums.leaf(m.shard)[1] = static_cast<double>(s.correct);
      forward_end = clock.now();  // the last one stays
    };
    executor.train({.step = step, .count = batch.count, .extent = extent, .fetch = fetch, .done = done},
                   reducer);
    clock.mark(forward, forward_end);
    clock.mark(backward);
    reducer.wait_all();
    clock.mark(reduction);
    sums.reduce("loss of the step");
    clock.mark(loss);
    context.pool.run([&](int t) {
      const Range part = part_of(elements, t, context.pool.size(), 1024);
      if (part.size() > 0)
        optimizer.update(context.kernels, context.lanes[static_cast<std::size_t>(t)], context.variables,
                         reducer.result(), part, step);
    });
    clock.mark(update);
  }
  return {median(refresh),   median(forward), median(backward),
          median(reduction), median(loss),    median(update)};
}

}  // namespace lockstep
