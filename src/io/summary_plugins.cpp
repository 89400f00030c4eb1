// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/summary_plugins.h"

#include <fmt/format.h>

#include "core/error.h"
#include "plugin_data.pb.h"

namespace lockstep {

namespace {

template <typename Element>
std::string bytes_of(std::span<const Element> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

void require_shape(std::string_view tag, std::size_t count, const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  LOCKSTEP_REQUIRE(static_cast<std::size_t>(elements) == count, ErrorKind::config,
                   "summary '{}': {} elements do not have the shape [{}]", tag, count,
                   fmt::join(shape, ", "));
}

SummaryValue texts_of(std::string_view tag, std::vector<std::string> texts, std::vector<std::int64_t> shape) {
  require_shape(tag, texts.size(), shape);
  return {std::string(tag),
          TensorData{.dtype = SummaryDType::text, .shape = std::move(shape), .strings = std::move(texts)},
          {.plugin = "text"}};
}

/// The value is in the metadata; the tensor is empty.
SummaryValue hparams_value(const char* tag, const event_file::HParamsPluginData& data) {
  return {tag,
          TensorData{.dtype = SummaryDType::f32, .shape = {0}},
          {.plugin = "hparams", .content = data.SerializeAsString()}};
}

}  // namespace

SummaryValue text_value(std::string_view tag, std::string text) {
  return texts_of(tag, {std::move(text)}, {});
}

SummaryValue text_value(std::string_view tag, std::vector<std::string> texts) {
  const auto count = static_cast<std::int64_t>(texts.size());
  return texts_of(tag, std::move(texts), {count});
}

SummaryValue text_table_value(std::string_view tag, std::vector<std::string> texts, std::int64_t columns) {
  LOCKSTEP_REQUIRE(columns > 0, ErrorKind::config, "summary '{}': a table needs columns", tag);
  const std::int64_t rows = static_cast<std::int64_t>(texts.size()) / columns;
  return texts_of(tag, std::move(texts), {rows, columns});
}

SummaryValue tensor_value(std::string_view tag, std::span<const float> values,
                          std::vector<std::int64_t> shape) {
  require_shape(tag, values.size(), shape);
  return {std::string(tag),
          TensorData{.dtype = SummaryDType::f32, .shape = std::move(shape), .bytes = bytes_of(values)}};
}

SummaryValue tensor_value(std::string_view tag, std::span<const std::int64_t> values,
                          std::vector<std::int64_t> shape) {
  require_shape(tag, values.size(), shape);
  return {std::string(tag),
          TensorData{.dtype = SummaryDType::i64, .shape = std::move(shape), .bytes = bytes_of(values)}};
}

SummaryValue pr_curve_value(std::string_view name, const PrCurveCounts& counts) {
  const std::size_t n = counts.tp.size();
  LOCKSTEP_REQUIRE(n >= 2 && counts.fp.size() == n && counts.tn.size() == n && counts.fn.size() == n,
                   ErrorKind::config, "PR curve '{}': needs the same number of each count, and at least two",
                   name);
  std::vector<float> data;
  data.reserve(6 * n);
  for (const std::vector<double>* row : {&counts.tp, &counts.fp, &counts.tn, &counts.fn})
    for (const double count : *row) data.push_back(static_cast<float>(count));
  const auto ratio = [](double part, double rest) {
    return static_cast<float>(part + rest > 0 ? part / (part + rest) : 0);
  };
  for (std::size_t i = 0; i < n; ++i) data.push_back(ratio(counts.tp[i], counts.fp[i]));
  for (std::size_t i = 0; i < n; ++i) data.push_back(ratio(counts.tp[i], counts.fn[i]));
  event_file::PrCurvePluginData plugin;
  plugin.set_num_thresholds(static_cast<std::uint32_t>(n));
  SummaryValue value = tensor_value(fmt::format("{}/pr_curves", name), std::span<const float>(data),
                                    {6, static_cast<std::int64_t>(n)});
  value.metadata = {
      .plugin = "pr_curves", .content = plugin.SerializeAsString(), .display_name = std::string(name)};
  return value;
}

std::vector<SummaryValue> hparams_start(const HParamsSession& session) {
  event_file::HParamsPluginData experiment, start;
  experiment.mutable_experiment()->set_time_created_secs(session.start_seconds);
  start.mutable_session_start_info()->set_start_time_secs(session.start_seconds);
  start.mutable_session_start_info()->set_group_name(session.group);
  auto& values = *start.mutable_session_start_info()->mutable_hparams();
  for (const auto& [name, value] : session.values) {
    event_file::HParamInfo& info = *experiment.mutable_experiment()->add_hparam_infos();
    info.set_name(name);
    if (const auto* const number = std::get_if<double>(&value)) {
      info.set_type(3);
      values[name].set_number_value(*number);
    } else if (const auto* const flag = std::get_if<bool>(&value)) {
      info.set_type(2);
      values[name].set_bool_value(*flag);
    } else {
      info.set_type(1);
      values[name].set_string_value(std::get<std::string>(value));
    }
  }
  for (const auto& [folder, tag] : session.metrics) {
    event_file::MetricInfo& info = *experiment.mutable_experiment()->add_metric_infos();
    info.mutable_name()->set_group(folder);
    info.mutable_name()->set_tag(tag);
    info.set_display_name(folder.empty() ? tag : folder + "/" + tag);
    info.set_dataset_type(folder.empty() ? 1 : 2);
  }
  return {hparams_value("_hparams_/experiment", experiment),
          hparams_value("_hparams_/session_start_info", start)};
}

SummaryValue hparams_end(HParamsStatus status, double end_seconds) {
  event_file::HParamsPluginData data;
  data.mutable_session_end_info()->set_status(static_cast<int>(status));
  data.mutable_session_end_info()->set_end_time_secs(end_seconds);
  return hparams_value("_hparams_/session_end_info", data);
}

}  // namespace lockstep
