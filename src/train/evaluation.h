// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Evaluates a whole data set: every sample once, with sums along the tree, so that the numbers are the same
// on any number of ranks.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "comm/small_sum.h"
#include "core/function_ref.h"
#include "train/dataset_batch_source.h"
#include "train/evaluation_metrics.h"
#include "train/executor.h"
#include "train/guarded_batch_source.h"
#include "train/loss_report.h"

namespace lockstep {

struct EvaluationResult {
  double interruption = 0;  ///< not 0: the evaluation was interrupted, and nothing else is set
  // A number is NaN if no sample counts for it; `without` has its name then.
  std::int64_t samples = 0;
  double loss = 0;  ///< mean over what counts, over all heads
  /// Share of samples whose largest output is the label's class. They have their weights, as in all metrics.
  double accuracy = 0;
  std::vector<double> parts = {};  ///< values of Evaluation::part_names()
  std::vector<MetricResult> metrics = {};
  /// Names of numbers that there are none of: all labels are ignored, or all weights are 0. Sorted.
  std::vector<std::string> without = {};

  bool lacks(std::string_view name) const { return std::ranges::binary_search(without, name); }
  /// A metric has this name. It replaces the number of the losses with the same name.
  bool has_metric(std::string_view name) const;
};

/// "no result for loss, accuracy: ...", for warnings about EvaluationResult::without.
std::string no_result_text(std::span<const std::string_view> names);

class Evaluation {
 public:
  /// `control` is used for the sums, once per batch, and once more for `metrics`. References outlive the
  /// evaluation.
  Evaluation(ExecutorContext context, Communicator& control, const UsedDataset& data, std::int64_t batch_size,
             std::vector<BoundMetric> metrics = {});

  std::size_t scratch_bytes() const { return executor_.scratch_bytes(); }
  std::size_t activation_bytes() const { return executor_.activation_bytes(); }
  /// The parts of a result, in addition to loss and accuracy (LossReport::names).
  std::span<const std::string> part_names() const { return report_.names(); }
  /// Some metrics are those of layers, for which the executor has an observer.
  bool reads_layers() const { return metrics_ != nullptr && metrics_->observer() != nullptr; }
  /// If no metric is that of a layer: `observer` sees what layers compute, and outlives the evaluation.
  void observe(StepObserver& observer) { executor_.observe(&observer); }
  const Graph::Calls& calls() const { return executor_.calls(); }
  /// All ranks. `interruption` is called for each batch. If it returns anything but 0 on any rank, all ranks
  /// stop after that batch, and the result has the largest value.
  EvaluationResult run(FunctionRef<double()> interruption);
  EvaluationResult run() {
    return run([] { return 0.0; });
  }

 private:
  /// What each rank sends with the sums of a batch.
  static constexpr int kInterruption = 0, kReadFailed = 1, kRankValues = 2;

  void leave_out(const double* totals, EvaluationResult& result) const;

  const Heads& heads_;
  StepPlan plan_;
  Executor executor_;
  DatasetBatchSource samples_;
  GuardedBatchSource source_;
  LossReport report_;
  SmallSum sums_;
  void take_weighted_accuracies(EvaluationResult& result) const;

  std::unique_ptr<EvaluationMetrics> metrics_;  ///< null: none
  std::vector<std::string> accuracies_;         ///< the last ones of `metrics_`: weighted_accuracies()
  Communicator& control_;
};

}  // namespace lockstep
