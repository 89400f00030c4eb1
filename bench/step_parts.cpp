// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "step_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/timer.h"
#include "train/batch_source.h"
#include "train/loss_report.h"

namespace lockstep {

namespace {

/// Seconds since the last mark.
class Clock {
 public:
  void begin() { timer_.restart(), last_ = 0; }
  double lap() {
    const double now = timer_.seconds();
    return now - std::exchange(last_, now);
  }
  void mark(std::vector<double>& part) { part.push_back(lap()); }

 private:
  Timer timer_;
  double last_ = 0;
};

/// Separates the forward and backward time of one thread's microshards. Without synchronised batch norms,
/// each microshard runs forward and backward before the next one is fetched. So the time from a loss to the
/// next fetch or to the end is backward.
class Passes {
 public:
  explicit Passes(Clock& clock) : clock_(clock) {}
  void begin() { forward_ = backward_ = 0, in_backward_ = false; }
  void fetched() { (in_backward_ ? backward_ : forward_) += clock_.lap(), in_backward_ = false; }
  void loss_done() { forward_ += clock_.lap(), in_backward_ = true; }
  void end(std::vector<double>& forward, std::vector<double>& backward) {
    backward_ += clock_.lap();
    forward.push_back(forward_), backward.push_back(backward_);
  }

 private:
  Clock& clock_;
  double forward_ = 0, backward_ = 0;
  bool in_backward_ = false;
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
  const LossReport report(context.heads);
  SmallSum sums(control, context.shards, 0, report.width());
  executor.attach(reducer);
  workers.grow_scratch(executor.scratch_bytes());

  std::vector<double> refresh, forward, backward, reduction, loss, update;
  Clock clock;
  Passes passes(clock);
  Cursor cursor;
  for (int step = 0; step < steps; ++step, cursor = plan.advance(cursor)) {
    const Batch batch = plan.batch(cursor);
    clock.begin();
    executor.refresh_weights();
    clock.mark(refresh);
    passes.begin();
    auto extent = [&](int shard) { return source.extent(batch, shard); };
    auto fetch = [&](const Microshard& m, int lane, int slot, float* features) {
      passes.fetched();
      return source.fetch(batch, m, lane, slot, features);
    };
    auto done = [&](const Microshard& m, std::span<const HeadSums> s) {
      LossReport::fill(s, sums.leaf(m.shard));
    };
    auto after_loss = [&](const MicroshardOutputs&) { passes.loss_done(); };
    executor.train({.step = step,
                    .count = batch.count,
                    .extent = extent,
                    .fetch = fetch,
                    .done = done,
                    .outputs = BatchView::Outputs(after_loss)},
                   reducer);
    passes.end(forward, backward);
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
