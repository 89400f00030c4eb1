// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "step_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/range.h"
#include "core/timer.h"
#include "train/dataset_batch_source.h"
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
class Passes final : public OutputSink {
 public:
  explicit Passes(Clock& clock) : clock_(clock) {}
  void begin() { forward_ = backward_ = 0, in_backward_ = false; }
  void fetched() { (in_backward_ ? backward_ : forward_) += clock_.lap(), in_backward_ = false; }
  void take(const MicroshardOutputs&) override { forward_ += clock_.lap(), in_backward_ = true; }
  void end(std::vector<double>& forward, std::vector<double>& backward) {
    backward_ += clock_.lap();
    forward.push_back(forward_), backward.push_back(backward_);
  }

 private:
  Clock& clock_;
  double forward_ = 0, backward_ = 0;
  bool in_backward_ = false;
};

/// A data set's batches, each fetch marked.
class MarkedSource final : public BatchSource {
 public:
  MarkedSource(DatasetBatchSource& source, Passes& passes) : source_(source), passes_(passes) {}
  Microshard extent(const Batch& batch, int shard) const override { return source_.extent(batch, shard); }
  Labels fetch(const Batch& batch, const Microshard& microshard, FetchPlace place, float* features) override {
    passes_.fetched();
    return source_.fetch(batch, microshard, place, features);
  }

 private:
  DatasetBatchSource& source_;
  Passes& passes_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

StepParts measure_parts(ExecutorContext context, Communicator& gradients, Communicator& control,
                        const Dataset& dataset, const StepPlan& plan, Optimizer& optimizer, Workers& workers,
                        int steps) {
  Executor executor(context, true, plan.distinct_shard_sizes());
  DatasetBatchSource dataset_source(dataset, plan, context.pool.size(), executor.num_slots());
  const std::int64_t elements = context.variables.trainable_elements();
  GradientReducer reducer(
      gradients, &context.pool, context.shards, elements,
      make_buckets(elements, context.variables.cut_points(), std::int64_t{1} << 20, std::int64_t{25} << 20));
  const LossReport report(context.heads);
  SmallSum sums(control, context.shards, 0, report.width());
  executor.attach(reducer);
  workers.grow_scratch(executor.scratch_bytes(), executor.num_lanes());

  std::vector<double> refresh, forward, backward, reduction, loss, update;
  Clock clock;
  Passes passes(clock);
  MarkedSource source(dataset_source, passes);
  Cursor cursor;
  for (int step = 0; step < steps; ++step, cursor = plan.advance(cursor)) {
    const Batch batch = plan.batch(cursor);
    clock.begin();
    executor.refresh_weights();
    clock.mark(refresh);
    passes.begin();
    executor.train({.source = source, .batch = batch, .step = step, .outputs = &passes}, reducer);
    const Range own = executor.own_shards();
    for (int shard = static_cast<int>(own.first); shard < own.last; ++shard)
      LossReport::fill(executor.head_sums(shard), sums.leaf(shard));
    passes.end(forward, backward);
    reducer.wait_all();
    clock.mark(reduction);
    sums.reduce("loss of the step");
    clock.mark(loss);
    optimizer.begin_step(step);
    context.pool.run([&](int t) {
      const Range part = part_of(elements, t, context.pool.size(), 1024);
      if (part.size() > 0)
        optimizer.update(context.kernels, context.lanes[static_cast<std::size_t>(t)], context.variables,
                         reducer.result(), part);
    });
    clock.mark(update);
  }
  return {median(refresh),   median(forward), median(backward),
          median(reduction), median(loss),    median(update)};
}

}  // namespace lockstep
