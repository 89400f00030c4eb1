// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/output_units.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/reader_dataset.h"
#include "data/table_info.h"
#include "model/heads.h"

namespace lockstep {

namespace {

/// What became of one number of a target: model = (data * factor + offset - mean) / std.
struct Conversion {
  double scale = 1, shift = 0;
};

double at(const std::vector<float>& values, std::int64_t channel, double none) {
  if (values.empty()) return none;
  return static_cast<double>(values.size() == 1 ? values[0] : values[static_cast<std::size_t>(channel)]);
}

Conversion conversion_of(const FeatureTransform& transform, std::int64_t channel) {
  const double mean = at(transform.mean, channel, 0), std = at(transform.std, channel, 1);
  const double factor = static_cast<double>(transform.scale);
  if (factor == 0) return {};
  return {std / factor, (mean - static_cast<double>(transform.offset)) / factor};
}

/// The numbers of a target are those of the data after its conversion alone, and only moved.
bool has_units(const ReaderDataset& target) {
  const FeatureStages& stages = target.stages();
  return stages.conversion().is_complete() && !stages.whitening().options().used() &&
         stages.transforms().keeps_units();
}

/// Of the columns of a table, one number each; else none.
std::vector<std::string> column_names(const std::vector<TableInfo::Column>& columns, std::int64_t numbers) {
  std::vector<std::string> names;
  for (const TableInfo::Column& column : columns)
    if (column.values.empty() && !column.name.empty()) names.push_back(column.name);
  if (std::ssize(names) != numbers || std::ssize(columns) != numbers) names.clear();
  return names;
}

std::vector<std::string> names_of_target(const DatasetPart& target) {
  const std::int64_t numbers = target.data->feature_shape().num_elements();
  if (numbers == 1) return {target.name};
  std::vector<std::string> names;
  if (const TableInfo* const table = target.data->table(); table != nullptr)
    names = column_names(table->features, numbers);
  constexpr std::int64_t kMostNumbered = 64;  // a picture has numbers, not names
  if (names.empty() && numbers <= kMostNumbered && target.data->feature_shape().rank() == 1)
    for (std::int64_t i = 0; i < numbers; ++i) names.push_back(fmt::format("{}_{}", target.name, i));
  return names;
}

/// Names of the labels that a reader gives.
std::vector<std::string> names_of_labels(const Dataset& data) {
  for (const DatasetPart& part : data.inputs())
    if (const TableInfo* const table = part.data->table();
        table != nullptr && part.data->label_kind() != LabelKind::none)
      return column_names(table->labels, data.num_label_columns());
  return {};
}

}  // namespace

OutputUnits::OutputUnits(const Dataset& data, const Heads& heads, int number) {
  const Head& head = heads[number];
  const std::int64_t columns = data.num_label_columns();
  if (columns == 0 || head.loss->predictions() != PredictionKind::values || !head.table.empty()) return;
  const auto [first, last] = heads.columns_of(head, columns);
  of_outputs_ = last - first == head.shape.num_elements();
  const std::vector<DatasetPart> targets = data.targets();
  if (targets.empty()) {
    const std::vector<std::string> names = names_of_labels(data);
    if (!names.empty() && of_outputs_) names_.assign(names.begin() + first, names.begin() + last);
    return;
  }
  bool named = true, differs = false;
  std::int64_t column = 0;
  std::vector<Conversion> all;
  for (const DatasetPart& target : targets) {
    const Shape& shape = target.data->feature_shape();
    const std::vector<std::string> names = names_of_target(target);
    const std::int64_t channels =
        channels_of(target.data->stored_shape(), target.data->sequence() != nullptr);
    const bool converts = has_units(*target.data) && !head.loss->ignored();
    for (std::int64_t i = 0; i < shape.num_elements(); ++i, ++column) {
      if (column < first || column >= last) continue;
      const std::int64_t channel = shape.rank() == 0 ? 0 : i % channels;
      all.push_back(converts ? conversion_of(target.data->stages().conversion().transform(), channel)
                             : Conversion{});
      differs = differs || all.back().scale != 1 || all.back().shift != 0;
      named = named && !names.empty();
      if (named) names_.push_back(names[static_cast<std::size_t>(i)]);
    }
  }
  if (!named || !of_outputs_) names_.clear();
  if (!differs) return;
  for (const Conversion& one : all) {
    scale_.push_back(one.scale);
    shift_.push_back(one.shift);
  }
}

void OutputUnits::to_data(std::span<float> rows) const {
  if (scale_.empty()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t number = i % scale_.size();
    rows[i] = static_cast<float>(static_cast<double>(rows[i]) * scale_[number] + shift_[number]);
  }
}

void OutputUnits::to_model(std::span<float> rows) const {
  if (scale_.empty()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t number = i % scale_.size();
    rows[i] = static_cast<float>((static_cast<double>(rows[i]) - shift_[number]) / scale_[number]);
  }
}

std::vector<OutputUnits> output_units(const Dataset& data, const Heads& heads) {
  std::vector<OutputUnits> all;
  for (int head = 0; head < heads.size(); ++head) all.emplace_back(data, heads, head);
  return all;
}

}  // namespace lockstep
