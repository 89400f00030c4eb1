// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/metric_cases.h"

namespace lockstep {

namespace {

std::string labels_text(const MetricInput& input) {
  return fmt::format("{} {} per sample", input.label_columns,
                     input.dense_labels ? "label values" : "class indices");
}

std::int64_t positions_of(const MetricInput& input) {
  return input.output.num_elements() / std::max<std::int64_t>(input.output.last(), 1);
}

void require_class_labels(const Params& params, const MetricInput& input) {
  const std::int64_t positions = positions_of(input), classes = input.output.last();
  const std::int64_t expected = input.dense_labels ? positions * classes : positions;
  if (input.label_columns != expected)
    refuse_metric(params,
                  fmt::format("outputs of {} take {} class indices or {} label values per sample, but the "
                              "head has {}",
                              input.output.to_string(), positions, positions * classes, labels_text(input)),
                  "Correct the head's label columns.");
}

void require_columns(const Params& params, const MetricInput& input) {
  if (input.label_columns != input.output.num_elements())
    refuse_metric(params,
                  fmt::format("outputs of {} take {} labels per sample, but the head has {}",
                              input.output.to_string(), input.output.num_elements(), labels_text(input)),
                  "Correct the head's label columns.");
}

}  // namespace

void refuse_metric(const Params& params, std::string what, std::string advice) {
  throw Error(ErrorKind::config, fmt::format("{}: {}", params.subject(), what), params.where(),
              std::move(advice));
}

ClassCases::ClassCases(const Params& params, const MetricInput& input)
    : positions_(positions_of(input)),
      classes_(input.output.last()),
      ignored_(input.ignore_index.value_or(0)),
      ignores_(input.ignore_index.has_value()) {
  if (input.predictions != PredictionKind::classes)
    refuse_metric(params, "needs exclusive classes, which the head's loss does not have",
                  "If the outputs are such, set `predictions: softmax`.");
  if (classes_ < 2)
    refuse_metric(params,
                  fmt::format("needs at least two classes, but the outputs are {}", input.output.to_string()),
                  "End with a layer of one output per class, or set `predictions: sigmoid`.");
  require_class_labels(params, input);
}

void ClassCases::fail(std::int64_t label) const {
  throw Error(ErrorKind::data, fmt::format("label {} is not one of the {} classes", label, classes_),
              "metric", "Labels start at 0; `ignore_index` is a label that does not count.");
}

LabelCases::LabelCases(const Params& params, const MetricInput& input, bool single)
    : positions_(positions_of(input)),
      width_(input.output.last()),
      columns_(width_),
      ignored_(input.ignore_index.value_or(0)),
      by_class_(input.predictions == PredictionKind::classes),
      ignores_(input.ignore_index.has_value()) {
  if (input.predictions == PredictionKind::values)
    refuse_metric(params, "needs probabilities, and the head's loss has none",
                  "To convert the outputs, set `predictions: sigmoid` or `softmax`; if they are "
                  "probabilities already, `labels` or `classes`.");
  if (!by_class_) {
    require_columns(params, input);
    return;
  }
  if (width_ < 2)
    refuse_metric(params,
                  fmt::format("needs at least two classes, but the outputs are {}", input.output.to_string()),
                  "If the one output is a single label, set `predictions: sigmoid`.");
  require_class_labels(params, input);
  if (!single) return;
  columns_ = 1;
  offset_ = 1;
}

ValueCases::ValueCases(const Params& params, const MetricInput& input)
    : positions_(positions_of(input)),
      columns_(input.output.last()),
      ignored_(input.ignore_index.value_or(0)),
      ignores_(input.ignore_index.has_value()) {
  require_columns(params, input);
}

}  // namespace lockstep
