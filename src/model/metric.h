// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What evaluations report beside the loss. A metric is a state of a few doubles that is filled from
// microshards and merged along the tree, and a value that is computed from the total at the end, never an
// average of ratios. Counts are whole numbers in doubles, exact below 2^53; sums of other numbers run in
// an order that the shards fix. So the value does not depend on the number of ranks and threads.
//
// Everything here works on host memory. To add a metric: a class and its entry in metrics/, a line in
// metric_table.cpp, its test in tests/unit/model/, its section in docs/metrics.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.h"
#include "core/shape.h"
#include "kernels/metric.h"
#include "model/loss.h"
#include "model/prediction_kind.h"

namespace lockstep {

/// What a metric is about: a head's outputs and labels, as they are known at the start.
struct MetricInput {
  Shape output;                                          ///< of one sample
  PredictionKind predictions = PredictionKind::classes;  ///< what the numbers in MetricBatch::predictions are
  bool dense_labels = false;                             ///< rows of numbers; false: class indices
  std::int64_t label_columns = 1;                        ///< 0: there are no labels
  std::optional<std::int64_t> ignore_index;              ///< labels with this value count nowhere
  std::int64_t num_samples = 0;                          ///< of the whole evaluation set
};

/// n samples in host memory. What no metric needs is null.
struct MetricBatch {
  std::int64_t n = 0;
  const float* outputs = nullptr;      ///< n x output, as the head's layer gives them
  const float* predictions = nullptr;  ///< n x output: probabilities, or what else the loss predicts; null
                                       ///< if needs_predictions() is false
  const ClassScore* scores = nullptr;  ///< n x positions; null if class_parts() is 0
  Labels labels;                       ///< n x label_columns
};

/// The class of each of n x positions from labels of either form (of rows of C numbers the largest), for
/// MetricKernels::class_scores.
void class_labels(const Labels& labels, std::int64_t n, const Shape& output, std::int32_t* to);

/// One score and whether it belongs to a positive label (1) or not (0); -1: it does not count.
struct ScoreRecord {
  float score, label;
};

/// Numbers beside a metric's value: one per class, or a matrix.
struct MetricTable {
  std::string_view name;
  std::int64_t columns = 0;  ///< of a matrix, row by row; 0: a plain list
  std::vector<double> values;
};

struct MetricReport {
  std::optional<double> value;  ///< confusion_matrix has none
  std::vector<MetricTable> tables;
};

class Metric {
 public:
  virtual ~Metric() = default;
  /// Doubles of state, which begin at 0.
  virtual std::int64_t width() const = 0;
  /// Adds a microshard's samples. Different states may be filled by different threads at once.
  virtual void add(const MetricBatch& batch, double* state) const = 0;
  /// into = into (+) right along the tree; element-wise addition unless the metric says otherwise.
  virtual void merge(double* into, const double* right) const;

  /// For values that need all scores at once: so many records of each sample, which come together before
  /// value().
  virtual std::int64_t records_per_sample() const { return 0; }
  /// Writes n x records_per_sample().
  virtual void record(const MetricBatch&, ScoreRecord*) const {}

  /// `records`: those of all samples, in any order of the samples; may be reordered.
  virtual MetricReport report(const double* totals, std::span<ScoreRecord> records) const = 0;

  /// False if it gives tables alone.
  virtual bool has_value() const { return true; }
  virtual bool needs_predictions() const { return true; }
  virtual bool needs_outputs() const { return false; }
  /// A union of ClassScorePart: what it takes in place of the outputs.
  virtual unsigned class_parts() const { return 0; }
  /// A layer whose outputs it takes in place of the head's; empty: the head's.
  virtual std::string layer() const { return {}; }
};

struct MetricEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  bool needs_labels;
  /// Throws Error(config), with the position in the configuration, if the metric does not fit the head.
  std::unique_ptr<Metric> (*make)(const Params&, const MetricInput&);
};
std::span<const MetricEntry> metric_table();
/// Options that every metric takes beside its own.
std::span<const ParamSpec> common_metric_table();

/// A metric of the configuration before anything is known of the model.
struct MetricSpec {
  const MetricEntry* entry = nullptr;
  Params params;     ///< the entry's and the common options
  std::string name;  ///< in reports: the option `name`, or the metric's own
  std::string head;  ///< empty: not said
  /// The option `predictions` in place of what the head's loss says.
  enum class Transform { of_loss, softmax, sigmoid, none } transform = Transform::of_loss;
  PredictionKind kind = PredictionKind::values;  ///< unless of_loss
};
/// A list of metrics, each a name or {name: options}; null: none. Throws Error(config).
std::vector<MetricSpec> metrics_from_config(const Node& list);
/// `input` as the head has it; the spec's own `predictions` and `ignore_index` go first. Throws Error(config)
/// if the metric does not fit.
std::unique_ptr<Metric> make_metric(const MetricSpec& spec, MetricInput input);

/// For a spec's own transformation: n rows of `output`, softmax over the last axis or sigmoid, in double.
void transform_outputs(MetricSpec::Transform transform, std::int64_t n, const Shape& output,
                       const float* outputs, float* predictions);

}  // namespace lockstep
