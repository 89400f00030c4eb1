// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/output_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "data/reader_dataset.h"
#include "data/table_info.h"
#include "model/heads.h"
#include "train/target_units.h"

namespace lockstep {

namespace {

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
  bool named = true;
  std::int64_t column = 0;
  for (const DatasetPart& target : targets) {
    const std::int64_t numbers = target.data->feature_shape().num_elements();
    const std::int64_t begin = std::max(column, first), end = std::min(column + numbers, last);
    const std::int64_t before = column;
    column += numbers;
    if (begin >= end) continue;
    const std::vector<std::string> names = names_of_target(target);
    named = named && !names.empty();
    if (named) names_.insert(names_.end(), names.begin() + (begin - before), names.begin() + (end - before));
    add_target(target, head, {begin - before, end - before}, begin - first);
  }
  if (!named || !of_outputs_) names_.clear();
  if (std::ranges::all_of(linear_, [](const Linear& one) { return one.scale == 1 && one.shift == 0; }))
    linear_.clear();
  numbers_ = static_cast<std::size_t>(last - first);
  if (!of_outputs_ && changes_labels())
    problem_ =
        fmt::format("the model has {} outputs for {} targets", head.shape.num_elements(), last - first);
}

/// `own`: the numbers of the target that the head reads, which are [at, at + own.size()) of the head's.
void OutputUnits::add_target(const DatasetPart& target, const Head& head, Range own, std::int64_t at) {
  linear_.resize(static_cast<std::size_t>(at + own.size()));
  auto units = std::make_shared<const TargetUnits>(*target.data);
  if (!units->differs()) return;
  std::string problem = units->problem();
  if (problem.empty() && head.loss->ignored()) problem = "its loss leaves out a value of the labels";
  if (problem.empty() && units->needs_whole_samples() &&
      own.size() != target.data->feature_shape().num_elements())
    problem = "it is whitened, and the head has a part of its numbers";
  if (!problem.empty()) {
    if (problem_.empty())
      problem_ = target.name.empty() ? problem : fmt::format("{}: {}", target.name, problem);
    return;
  }
  double scale = 1, shift = 0;
  if (!units->is_linear(own.first, scale, shift)) {
    pieces_.push_back({std::move(units), own, static_cast<std::size_t>(at)});
    return;
  }
  for (std::int64_t i = own.first; i < own.last; ++i) {
    Linear& linear = linear_[static_cast<std::size_t>(at + i - own.first)];
    units->is_linear(i, linear.scale, linear.shift);
  }
}

namespace {
/// Calls `convert` for the numbers of each sample that it is for, in double.
void convert_piece(std::span<float> rows, std::size_t numbers, std::size_t at, std::size_t count,
                   const std::function<void(std::span<double>)>& convert) {
  thread_local std::vector<double> values;  // keeps its memory
  values.resize(count);
  for (std::size_t row = at; row + count <= rows.size(); row += numbers) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row), count, values.begin());
    convert(values);
    for (std::size_t i = 0; i < count; ++i) rows[row + i] = static_cast<float>(values[i]);
  }
}
}  // namespace

template <typename Convert>
void OutputUnits::each_number(std::span<float> rows, Convert convert) const {
  for (std::size_t row = 0; !linear_.empty() && row < rows.size(); row += numbers_)
    for (std::size_t i = 0; i < numbers_; ++i)
      rows[row + i] = static_cast<float>(convert(rows[row + i], linear_[i]));
}

void OutputUnits::to_data(std::span<float> rows) const {
  each_number(rows, [](float value, const Linear& linear) {
    return static_cast<double>(value) * linear.scale + linear.shift;
  });
  for (const Piece& piece : pieces_)
    convert_piece(rows, numbers_, piece.at, static_cast<std::size_t>(piece.own.size()),
                  [&](std::span<double> values) { piece.units->to_data(piece.own.first, values); });
}

void OutputUnits::to_model(std::span<float> rows) const {
  each_number(rows, [](float value, const Linear& linear) {
    return (static_cast<double>(value) - linear.shift) / linear.scale;
  });
  for (const Piece& piece : pieces_)
    convert_piece(rows, numbers_, piece.at, static_cast<std::size_t>(piece.own.size()),
                  [&](std::span<double> values) { piece.units->to_model(piece.own.first, values); });
}

std::vector<OutputUnits> output_units(const Dataset& data, const Heads& heads) {
  std::vector<OutputUnits> all;
  for (int head = 0; head < heads.size(); ++head) all.emplace_back(data, heads, head);
  return all;
}

}  // namespace lockstep
