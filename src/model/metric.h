// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The interface of a metric, which an evaluation reports in addition to the loss. A metric has a state of
// some doubles. Each microshard fills a state, the states are merged along the reduction tree, and the value
// is computed from the total; it is never an average of ratios. Counts are whole numbers in doubles, exact
// below 2^53, and other sums run in an order that the microshards fix. So the value does not depend on the
// number of ranks and threads. Metrics that need labels take the weights of the samples, where the data have
// some (MetricBatch::weight).
//
// Metrics work on host memory. To add one, write a class with its entry in metrics/, a line in
// metric_table.cpp, a test in tests/unit/model/metrics/ and a section in docs/metrics.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "config/table.h"
#include "core/shape.h"
#include "kernels/metric.h"
#include "model/direction.h"
#include "model/loss.h"
#include "model/metric_table.h"
#include "model/prediction_kind.h"

namespace lockstep {

/// The outputs and labels of a head, as far as they are known when metrics are made.
struct MetricInput {
  Shape output;                                          ///< of one sample
  PredictionKind predictions = PredictionKind::classes;  ///< what the numbers in MetricBatch::predictions are
  bool dense_labels = false;                             ///< true: rows of numbers; false: class indices
  std::int64_t label_columns = 1;                        ///< 0: there are no labels
  std::optional<std::int64_t> ignore_index;              ///< labels with this value do not count
  std::int64_t num_samples = 0;                          ///< in the whole evaluation set
  bool names_outputs = false;                            ///< there are several outputs, with names
};

/// n samples in host memory. What no metric of the head needs is null.
struct MetricBatch {
  std::int64_t n = 0;
  const float* outputs = nullptr;      ///< n x output, as the head's layer gives them
  const float* predictions = nullptr;  ///< n x output, from Loss::predict(); null if needs_predictions()
                                       ///< is false
  const ClassScore* scores = nullptr;  ///< n x positions; null if class_parts() is 0
  Labels labels;                       ///< n x label_columns, and n weights where the head has some

  /// A sample of weight 2 counts as two, and one of weight 0 does not count.
  double weight(std::int64_t sample) const {
    return labels.weights == nullptr ? 1.0 : static_cast<double>(labels.weights[sample]);
  }
};

/// Writes the class of each of n x positions, for MetricKernels::class_scores. The class of a row of C
/// numbers is the index of the largest.
void class_labels(const Labels& labels, std::int64_t n, const Shape& output, std::int32_t* to);

/// One score, and whether its label is positive (1) or negative (0); -1: the record does not count.
struct ScoreRecord {
  float score, label, weight = 1;
};

struct MetricReport {
  std::optional<double> value;  ///< confusion_matrix has none
  std::vector<MetricTable> tables;
};

class Metric {
 public:
  virtual ~Metric() = default;
  /// The number of doubles in a state. All start at 0.
  virtual std::int64_t width() const = 0;
  /// Adds samples to a state. Threads may fill different states at the same time.
  virtual void add(const MetricBatch& batch, double* state) const = 0;
  /// Merges `right` into `into`, in the order of the reduction tree. The default is element-wise addition.
  virtual void merge(double* into, const double* right) const;

  /// The number of records per sample, for a value that needs all scores at once. All records are gathered
  /// before report().
  virtual std::int64_t records_per_sample() const { return 0; }
  /// Writes n x records_per_sample() records.
  virtual void record(const MetricBatch&, ScoreRecord*) const {}

  /// Computes the value. `records` are those of all samples, in any order of the samples; the metric may
  /// reorder them.
  virtual MetricReport report(const double* totals, std::span<ScoreRecord> records) const = 0;

  /// With MetricInput::names_outputs the report has a table per_output.
  virtual bool reports_outputs() const { return false; }
  /// False if the report has tables only.
  virtual bool has_value() const { return true; }
  virtual bool needs_predictions() const { return true; }
  virtual bool needs_outputs() const { return false; }
  /// A union of ClassScorePart that the metric reads instead of the outputs; 0: none.
  virtual unsigned class_parts() const { return 0; }
  /// The layer whose outputs the metric reads; empty: the head's.
  virtual std::string layer() const { return {}; }
};

struct MetricEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  bool needs_labels;
  /// Throws Error(config), with the position in the configuration, if the metric does not fit the head.
  std::unique_ptr<Metric> (*make)(const Params&, const MetricInput&);
  /// Which values are better. Without it, options that compare the metric must say.
  Direction direction = Direction::none;
};
/// Lockstep's own metrics, then those that add() added.
Table<MetricEntry>& metric_table();
/// The options that every metric takes.
std::span<const ParamSpec> common_metric_table();

/// A metric of the configuration, before the model is known.
struct MetricSpec {
  const MetricEntry* entry = nullptr;
  Params params;     ///< the entry's options and the common ones
  std::string name;  ///< in reports: the option `name`, else the metric's name
  std::string head;  ///< empty: not given
  /// The option `predictions`, which replaces what the head's loss predicts.
  enum class Transform { of_loss, softmax, sigmoid, none } transform = Transform::of_loss;
  PredictionKind kind = PredictionKind::values;  ///< of the transformed outputs, unless of_loss
};
/// Reads a list of metrics, each a name or {name: options}; null: none. Throws Error(config).
std::vector<MetricSpec> metrics_from_config(const Node& list);
/// Makes a metric for a head. The spec's `predictions` and `ignore_index` take precedence over `input`.
/// Throws Error(config) if the metric does not fit the head.
std::unique_ptr<Metric> make_metric(const MetricSpec& spec, MetricInput input);

/// Applies the transformation of a spec to n rows of `output`, in double: softmax over the last axis, or
/// sigmoid.
void transform_outputs(MetricSpec::Transform transform, std::int64_t n, const Shape& output,
                       const float* outputs, float* predictions);

}  // namespace lockstep
