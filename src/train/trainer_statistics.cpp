// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The moving statistics of batch norm that go with the averaged variables, computed anew: the mean over
// batches of each batch's mean and unbiased variance, as PyTorch's update_bn computes it. The passes are
// those of training, with dropout.
//
// Why they are computed where they are used: moving statistics belong to the inputs of a batch norm, and
// averaged variables give other inputs. A pass in each step or checkpoint would cost too much: a checkpoint
// may be due every minute, or while a job has seconds to live. A pass that wrote to the run's own statistics
// would make the result depend on how often the run is evaluated. So variables and averages are exchanged,
// the forward phases of training run up to the last batch norm, and both are exchanged back; the numbers lie
// in the memory of the average, which no step changes in this mode. This is done before an evaluation with
// averages and before the last checkpoint, once per step; an interruption puts the earlier numbers back. The
// layer's own update of its moving statistics forms the mean over batches: it keeps n / (n + 1) in batch n.
// Training has the bits of a run without averages. A checkpoint between two evaluations has older statistics.
#include <algorithm>
#include <optional>

#include "data/step_plan.h"
#include "train/guarded_batch_source.h"
#include "train/trainer.h"
#include "train/trainer_parts.h"

namespace lockstep {

double Trainer::recompute_statistics(FunctionRef<double()> interruption) {
  Parts& p = *parts_;
  const MovingAverage* const average = p.update.average();
  if (average == nullptr || !average->rule().recomputes() || !average->has_begun(p.position.step) ||
      p.statistics_fit || !p.executor.has_statistics())
    return 0;
  LOCKSTEP_CHECK(!p.computed, "between compute() and apply()");
  exchange_average();
  p.kept.keep();
  p.update.set_schedules(std::max(p.position.step - 1, std::int64_t{0}));
  p.executor.refresh_weights();
  StepObserver* const observer = p.executor.observer();
  p.executor.observe(nullptr);
  const std::int64_t most = average->rule().batches;
  GuardedBatchSource source(p.source, p.context.graph.features().num_elements());
  struct OfRank {
    double interruption = 0, failed = 0;
  };
  std::vector<OfRank> all(static_cast<std::size_t>(p.control.size()));
  double interrupted = 0;
  std::optional<Batch> unread;
  std::int64_t n = 0;
  for (Cursor cursor; cursor.epoch == 0 && (most == 0 || n < most) && interrupted == 0 && !unread; ++n) {
    const auto done = static_cast<double>(n);
    const Batch batch = p.plan.batch(cursor);
    p.executor.collect_statistics({.source = source, .batch = batch, .step = n}, done / (done + 1));
    cursor = p.plan.advance(cursor);
    const OfRank mine{interruption(), source.failed(batch) ? 1.0 : 0.0};
    p.control.allgather(&mine, sizeof mine, all.data(), "computing batch norm's statistics");
    for (const OfRank& of_rank : all) {
      interrupted = std::max(interrupted, of_rank.interruption);
      if (of_rank.failed != 0) unread = batch;
    }
  }
  p.executor.observe(observer);
  if (interrupted != 0 || unread) p.kept.give_back_statistics();
  exchange_average();
  if (unread) source.throw_error(*unread, p.control);
  p.statistics_fit = interrupted == 0;
  return interrupted;
}

}  // namespace lockstep
