// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/metric.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "config/named_options.h"
#include "config/option.h"
#include "model/metric_cases.h"

namespace lockstep {

namespace {

enum class Predictions { of_loss, softmax, sigmoid, classes, labels, values };
/// The options that every metric takes.
struct Common {
  std::optional<std::string> name, head;
  Predictions predictions = Predictions::of_loss;
  std::optional<std::int64_t> ignore_index;
};
constexpr ParamSpec kCommonTable[] = {
    option<&Common::name>("name", "null", {}, "Name in reports; null: the metric's name."),
    option<&Common::head>("head", "null", {}, "The head that it evaluates; null: the only one."),
    option<&Common::predictions>(
        "predictions", "auto", one_of("auto|softmax|sigmoid|classes|labels|values"),
        "How to read the head's outputs. auto: as its loss does. softmax, sigmoid: convert them to "
        "probabilities. classes, labels: they are probabilities already, of exclusive classes or of labels. "
        "values: plain numbers."),
    option<&Common::ignore_index>(
        "ignore_index", "null", between(-2147483648, 2147483647).or_null(),
        "Labels with this value are ignored, in addition to those that the head's loss ignores."),
};

constexpr std::array<std::string_view, 5> kReserved = {"step", "epoch", "split", "loss", "samples"};

bool is_report_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '@';
  });
}

MetricSpec spec_of(const Node& item) {
  const NamedOptions named = named_options(item, "metric");
  MetricSpec spec;
  spec.entry = &metric_table().at(named);
  std::vector<ParamSpec> table(spec.entry->table.begin(), spec.entry->table.end());
  table.insert(table.end(), std::begin(kCommonTable), std::end(kCommonTable));
  spec.params = Params(named.options, table, "metric " + named.name);
  const Params& params = spec.params;
  const auto common = params.as<Common>();
  const std::string_view name = option_name<&Common::name>(params);
  spec.name = common.name.value_or(named.name);
  spec.head = common.head.value_or("");
  if (!is_report_name(spec.name))
    throw params.error(name, fmt::format("'{}' is no name for a metric", spec.name),
                       "A name has letters, digits and any of _ - . @ only.");
  if (std::find(kReserved.begin(), kReserved.end(), spec.name) != kReserved.end())
    throw params.error(name, fmt::format("'{}' means something else in reports", spec.name),
                       "Choose another name.");
  using enum MetricSpec::Transform;
  switch (common.predictions) {
    case Predictions::of_loss:
      return spec;
    case Predictions::softmax:
      spec.transform = softmax, spec.kind = PredictionKind::classes;
      return spec;
    case Predictions::sigmoid:
      spec.transform = sigmoid, spec.kind = PredictionKind::labels;
      return spec;
    case Predictions::classes:
      spec.transform = none, spec.kind = PredictionKind::classes;
      return spec;
    case Predictions::labels:
      spec.transform = none, spec.kind = PredictionKind::labels;
      return spec;
    case Predictions::values:
      spec.transform = none, spec.kind = PredictionKind::values;
  }
  return spec;
}

}  // namespace

void Metric::merge(double* into, const double* right) const {
  for (std::int64_t i = 0; i < width(); ++i) into[i] += right[i];
}

std::span<const ParamSpec> common_metric_table() { return kCommonTable; }

std::vector<MetricSpec> metrics_from_config(const Node& list) {
  std::vector<MetricSpec> specs;
  if (is_null(list)) return specs;
  if (list.kind != Node::Kind::list)
    throw Error(ErrorKind::config, "eval.metrics is not a list", list.where,
                "Write [accuracy, {top_k: {k: 5}}], or each metric after a dash.");
  ErrorCollector mistakes;
  for (const Node& item : list.items)
    mistakes.attempt([&] {
      specs.push_back(spec_of(item));
      for (std::size_t i = 0; i + 1 < specs.size(); ++i)
        if (specs[i].name == specs.back().name && specs[i].head == specs.back().head)
          throw specs.back().params.error(option_name<&Common::name>(specs.back().params),
                                          fmt::format("two metrics are called '{}'", specs[i].name),
                                          "Give one of them a name of its own: `name: ...`.");
    });
  mistakes.throw_if_any();
  return specs;
}

std::unique_ptr<Metric> make_metric(const MetricSpec& spec, MetricInput input) {
  if (spec.transform != MetricSpec::Transform::of_loss) input.predictions = spec.kind;
  if (const auto ignored = spec.params.as<Common>().ignore_index) input.ignore_index = ignored;
  if (spec.entry->needs_labels && input.label_columns == 0)
    throw spec.params.error(option_name<&Common::head>(spec.params),
                            "the metric compares with labels, and the head has none",
                            "Choose another head, or remove the metric.");
  return spec.entry->make(spec.params, input);
}

void class_labels(const Labels& labels, std::int64_t n, const Shape& output, std::int32_t* to) {
  const std::int64_t classes = output.last(), positions = n * output.num_elements() / classes;
  if (labels.indices != nullptr) {
    std::copy_n(labels.indices, positions, to);
    return;
  }
  for (std::int64_t i = 0; i < positions; ++i)
    to[i] = static_cast<std::int32_t>(index_of_largest(labels.rows + i * classes, classes));
}

void transform_outputs(MetricSpec::Transform transform, std::int64_t n, const Shape& output,
                       const float* outputs, float* predictions) {
  const std::int64_t count = n * output.num_elements(), classes = output.last();
  if (transform == MetricSpec::Transform::sigmoid) {
    for (std::int64_t i = 0; i < count; ++i)
      predictions[i] = static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(outputs[i]))));
    return;
  }
  if (transform != MetricSpec::Transform::softmax) {
    std::copy_n(outputs, count, predictions);
    return;
  }
  for (const float* row = outputs; row != outputs + count; row += classes, predictions += classes) {
    const auto largest = static_cast<double>(*std::max_element(row, row + classes));
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - largest);
    for (std::int64_t c = 0; c < classes; ++c)
      predictions[c] = static_cast<float>(std::exp(static_cast<double>(row[c]) - largest) / sum);
  }
}

}  // namespace lockstep
