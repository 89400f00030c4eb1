// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0

#include "data/normalization.h"
#include "data/sample_stream.h"
#include "io/json.h"
#include "tools/samples/set_report.h"

namespace lockstep {

namespace {

std::string text_of(const Json& json, int indent) { return json.dump(indent); }

Json shape_of(const Shape& shape) {
  Json extents = Json::array();
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

Json values_of(const ValueStatistics& values) {
  return {{"min", values.least}, {"max", values.most}, {"mean", values.mean}, {"std", values.deviation}};
}

Json features_of(const FeatureStatistics& features, const std::vector<std::string>& names = {}) {
  Json json = values_of(features.all);
  json["channels"] = Json::array();
  for (std::size_t c = 0; c < features.channels.size(); ++c) {
    json["channels"].push_back(values_of(features.channels[c]));
    if (c < names.size()) json["channels"].back()["name"] = names[c];
  }
  return json;
}

Json labels_of(const Dataset& data, const SetReport& report) {
  if (!report.labels) return nullptr;
  const LabelStatistics& labels = *report.labels;
  if (labels.counts.empty()) return {{"columns", labels.columns}, {"values", values_of(labels.values)}};
  Json classes = Json::array();
  for (const auto& [label, count] : labels.counts)
    classes.push_back({{"class", label}, {"name", class_name(data, label)}, {"samples", count}});
  return {{"classes", classes}};
}

}  // namespace

std::string json_text(const ReaderDataset& data, const SetReport& report) {
  Json json;
  json["set"] = report.training ? "train" : "eval";
  json["part"] = report.is_target ? "target" : "input";
  json["name"] = report.name.empty() ? Json() : Json(report.name);
  json["samples"] = data.size();
  json["chosen"] = report.chosen;
  json["looked_at"] = report.looked_at;
  json["shape"] = shape_of(data.stored_shape());
  json["type"] = name_of(data.feature_dtype());
  json["transformed_shape"] = shape_of(data.feature_shape());
  json["first_sample"] = data.where(report.first);
  json["bytes"] = data.size_bytes();
  json["read_while_used"] = data.stream() != nullptr;
  json["block_samples"] = data.blocks().block_samples();
  json["notes"] = report.notes;
  json["bad_records"] = data.stored().parts().num_left_out;
  const Normalization* const normalization = data.stages().conversion().normalization().get();
  json["normalization"] =
      normalization != nullptr ? Json{{"mean", normalization->mean}, {"std", normalization->std}} : Json();
  json["values"] = features_of(report.stored, report.names);
  json["transformed"] = report.transformed ? features_of(*report.transformed) : Json();
  json["labels"] = labels_of(data, report);
  json["samples_per_second"] = report.samples_per_second;
  json["transformed_per_second"] =
      report.transformed_per_second ? Json(*report.transformed_per_second) : Json();
  json["unpacked_per_second"] = report.unpacked_per_second ? Json(*report.unpacked_per_second) : Json();
  return text_of(json, -1);
}

std::string json_text(std::span<const std::string> sets, std::span<const std::string> findings) {
  Json json;
  json["sets"] = Json::array();
  for (const std::string& set : sets) json["sets"].push_back(Json::parse(set));
  json["findings"] = findings;
  return text_of(json, 2);
}

}  // namespace lockstep
