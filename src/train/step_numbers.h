// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a step: what microshards give to the exchange of all ranks, and what comes of its totals:
// losses, accuracies, the noise scale, and all metrics by name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "train/loss_report.h"
#include "train/noise_scale.h"
#include "train/step_metrics.h"
#include "train/step_result.h"

namespace lockstep {

class Dataset;
class GradientClip;
class Optimizer;
class RunSchedules;

class StepNumbers {
 public:
  /// `regularized`: the loss includes a regularization part. `noise`: null: not measured. `heads` outlive it.
  StepNumbers(const Heads& heads, bool regularized, std::unique_ptr<NoiseScale> noise);
  StepNumbers(const StepNumbers&) = delete;
  StepNumbers& operator=(const StepNumbers&) = delete;

  /// Where metrics have their values from. All of it outlives the numbers.
  struct Sources {
    const Optimizer& optimizer;     ///< the rates of its groups
    const RunSchedules* schedules;  ///< may be null
    GradientClip* clip;             ///< null: norms are not measured
    bool scales_loss;
    const Dataset& dataset;
    std::function<double()> communication_seconds, input_seconds;
  };
  /// Once: declares the metrics (step_metrics.h).
  void declare(const Sources& sources);
  /// By name, of the last step that was published.
  const StepMetrics& metrics() const { return metrics_; }

  /// A microshard's leaf of the exchange: the numbers of losses, then those of the noise scale.
  int leaf_doubles() const { return loss_doubles() + (noise_ ? NoiseScale::kWidth : 0); }
  int loss_doubles() const { return report_.width(); }
  void fill_leaf(int shard, std::span<const HeadSums> heads, std::int64_t samples, double* leaf) const;
  /// When the gradients are summed over all ranks. Waits for the device where the noise scale is measured.
  void gradients_are_summed(const float* gradients) {
    if (noise_) noise_->finish(gradients);
  }
  /// Completes the step's result with the losses of the exchange's totals, and publishes it. `samples` are
  /// those of the step's own batch.
  StepResult finish(StepResult step, const double* totals, std::int64_t samples, double regularization);
  /// Publishes the numbers of a step that an earlier job computed. The parts of its loss have no value.
  void publish(const StepResult& result);
  /// The result of the last finish(); step 0 before the first.
  const StepResult& last() const { return last_; }

  /// Measured in each step; null: not wanted (ClipRule::noise_scale).
  NoiseScale* noise_scale() { return noise_.get(); }

 private:
  LossReport report_;
  std::unique_ptr<NoiseScale> noise_;
  std::vector<double> parts_;  ///< of the loss
  StepMetrics metrics_;
  struct {
    StepMetrics::Id loss, accuracy, parts, learning_rate, schedules, loss_scale, samples;
  } ids_{};
  const RunSchedules* schedules_ = nullptr;
  StepResult last_;
  std::int64_t published_step_ = 0;
};

}  // namespace lockstep
