// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The metrics of `eval.metrics`. Each is bound to a head (or a layer), is filled from the microshards of an
// evaluation on the workers that computed them, and is summed once, at the end of the evaluation. The states
// of a shard's microshards are added in their order; then one sum runs along the tree. So the bits depend on
// the shards and the batch size, not on ranks and threads; values that come from counts depend on neither.
//
// On a device, the numbers per position that metrics of classes need are computed there. For other metrics
// the outputs or predictions are copied to the host after each microshard. The host waits for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/small_sum.h"
#include "core/range.h"
#include "data/step_plan.h"
#include "data/used_dataset.h"
#include "model/metric.h"
#include "train/executor_context.h"
#include "train/output_units.h"
#include "train/step_observer.h"

namespace lockstep {

/// A metric of the configuration that fits its head.
struct BoundMetric {
  MetricSpec spec;
  std::string name;  ///< in reports: "f1", or "topics/f1" where there are several heads
  int head = 0;
  std::unique_ptr<Metric> metric;
  Graph::Source layer{-1, 0};  ///< what it reads if metric->layer() is not empty
  Shape shape{};               ///< of what it reads, per sample
  OutputUnits units{};         ///< of the head, for metrics that read labels
  /// The outputs whose values are reported one by one in addition: NAME/price; empty: none.
  std::vector<std::string> columns{};

  /// The names under which its numbers are reported: NAME, if it has one number, then NAME/column.
  std::vector<std::string> number_names() const;
};

/// Binds metrics to the heads or layers that they read. Throws Error(config), with the position, if one does
/// not fit the model or the data.
std::vector<BoundMetric> bind_metrics(std::span<const MetricSpec> specs, const Heads& heads,
                                      const Graph& graph, const UsedDataset& data);

/// `accuracy` of each head of classes whose samples have weights. Without weights the sums of the losses give
/// it.
std::vector<BoundMetric> weighted_accuracies(const Heads& heads, const Graph& graph, const UsedDataset& data);

struct MetricResult {
  std::string name;
  MetricReport report;
  std::size_t metric = 0;  ///< of EvaluationMetrics::metrics(), which may have several results
};

class EvaluationMetrics final : public OutputSink, private StepObserver {
 public:
  /// All ranks. `plan` is that of the evaluation, one epoch. Throws Error(config) if the states are larger
  /// than the limit for a rank. References outlive the object.
  EvaluationMetrics(std::vector<BoundMetric> metrics, const ExecutorContext& context,
                    const Graph::Calls& calls, Communicator& control, const StepPlan& plan);

  std::span<const BoundMetric> metrics() const { return metrics_; }
  /// The observer that the executor needs for metrics of layers; null: none.
  StepObserver* observer() { return layers_.empty() ? nullptr : this; }

  /// Begins an evaluation.
  void begin();
  /// A shard's microshards come in order.
  void take(const MicroshardOutputs& outputs) override;
  /// The values, the same on all ranks. All ranks.
  std::vector<MetricResult> finish();

 private:
  /// Host memory for a head's numbers, and the device's (where that is other memory).
  struct Place {
    Buffer outputs, predictions, predictions_there;
    Buffer labels, labels_there, scores, scores_there;  ///< by position: its class, its ClassScore
  };
  /// What the metrics of a head read.
  struct Uses {
    bool outputs = false, predictions = false;
    unsigned class_parts = 0;
  };
  struct LayerValue {
    int operation, output;
    std::size_t metric;
  };
  void plan_records(const StepPlan& plan);
  Place make_place(const Uses& uses, const Shape& shape, std::int64_t most_samples) const;
  const ClassScore* scores_of(const Lane& lane, const Shape& shape, unsigned parts, const MetricBatch& batch,
                              const float* outputs, const Place& place) const;
  void add_one(std::size_t metric, int shard, int thread, MetricBatch batch);
  const float* to_host(const Lane& lane, const float* values, std::int64_t count, Buffer& pinned) const;

  void forward(int operation, const Pass& pass) override;

  std::vector<BoundMetric> metrics_;
  ExecutorContext context_;
  Communicator& control_;
  std::vector<std::int64_t> first_;  ///< of each metric's state in a leaf
  std::unique_ptr<SmallSum> sums_;
  Range own_;
  std::vector<Uses> uses_;                       ///< by head
  std::vector<std::vector<Place>> places_;       ///< by thread and head
  std::vector<std::vector<Buffer>> own_places_;  ///< by thread and metric: layers, own transformations
  std::vector<std::vector<Buffer>> widened_;     ///< likewise, on the device: layers held in 16-bit types
  std::vector<LayerValue> layers_;
  std::vector<std::int64_t> first_sample_;  ///< by own shard: where its records begin, in samples
  std::vector<std::int64_t> samples_;       ///< by own shard: number of its records
  std::int64_t most_samples_per_rank_ = 0;
  std::vector<std::vector<ScoreRecord>> records_;  ///< by metric: of all ranks, each with the same room
};

}  // namespace lockstep
