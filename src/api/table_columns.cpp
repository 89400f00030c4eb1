// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/params.h"
#include "core/error.h"

namespace lockstep {

namespace {

using Kind = TableColumn::Kind;

/// The input with the columns that are no embeddings, where there are several inputs.
constexpr std::string_view kTable = "table";

bool is_embedding(const TableColumn& column) { return column.kind == Kind::embedding; }

void check(const std::vector<TableColumn>& columns) {
  const auto wrong = [](const std::string& what, const char* advice) {
    return Error(ErrorKind::config, what, "columns of a table", advice);
  };
  if (columns.empty()) throw wrong("there are none", "Give one or more.");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const TableColumn& column = columns[i];
    if (column.name.empty() || column.name == kTable)
      throw wrong(fmt::format("'{}' is no name of a column here", column.name), "Rename the column.");
    if (is_embedding(column) && column.units < 1)
      throw wrong(fmt::format("the embedding of {} has no units", column.name), "Give 1 or more.");
    for (std::size_t j = 0; j < i; ++j)
      if (columns[j].name == column.name)
        throw wrong(fmt::format("{} is there twice", column.name), "Leave one out.");
  }
}

/// The table read as some of its columns.
Choice reader_of(const std::vector<TableColumn>& columns, readers::Csv table) {
  std::vector<std::string> names;
  Node categories;
  for (const TableColumn& column : columns) {
    names.push_back(column.name);
    if (column.kind == Kind::number) continue;
    set_option(categories, column.name,
               column.values.empty() ? OptionValue("auto") : OptionValue(column.values));
    categories.entries.back().second.key_quoted = true;  // a name, also if it looks like a number
  }
  table.columns = names;
  if (table.header.node() == nullptr) table.header = true;
  table.categories = {};
  if (!is_null(categories)) table.categories = categories;
  return readers::csv(table);
}

}  // namespace

TableColumn numeric_column(std::string name) { return {.kind = Kind::number, .name = std::move(name)}; }
TableColumn category_column(std::string name, std::vector<std::string> values) {
  return {.kind = Kind::category, .name = std::move(name), .values = std::move(values)};
}
TableColumn embedding_column(std::string name, std::int64_t units, std::vector<std::string> values) {
  return {.kind = Kind::embedding, .name = std::move(name), .values = std::move(values), .units = units};
}

Input table_input(const std::vector<TableColumn>& columns, readers::Csv table) {
  check(columns);
  std::vector<TableColumn> flat;
  std::ranges::remove_copy_if(columns, std::back_inserter(flat), is_embedding);
  if (flat.size() == columns.size()) return reader_of(columns, table);
  std::vector<std::pair<std::string, Input>> inputs;
  const auto add = [&](const std::string& name, const std::vector<TableColumn>& some) {
    readers::Csv part = table;
    if (!inputs.empty()) {  // the labels are those of the first input
      part.labels = {};
      part.classes = {};
      part.label_column = nullptr;
    }
    if (some.front().kind == Kind::embedding) part.normalize = {};
    inputs.emplace_back(name, reader_of(some, part));
  };
  if (!flat.empty()) add(std::string(kTable), flat);
  for (const TableColumn& column : columns)
    if (is_embedding(column)) add(column.name, {column});
  return Input::named(std::move(inputs));
}

LayerOutput table_features(const Features& features, const std::vector<TableColumn>& columns) {
  if (std::ranges::none_of(columns, is_embedding))
    return columns.empty() ? layers::flatten(features) : LayerOutput(features);
  std::vector<LayerOutput> parts;
  if (!std::ranges::all_of(columns, is_embedding)) parts.push_back(features[kTable]);
  for (const TableColumn& column : columns) {
    if (!is_embedding(column)) continue;
    // A row of the kernel for each value: the feature of the value is 1, all others are 0.
    parts.push_back(layers::dense(features[column.name],
                                  {.name = "embedding_" + column.name,
                                   .units = column.units,
                                   .bias = false,
                                   .kernel_initializer = initializers::truncated_normal(
                                       {.stddev = 1 / std::sqrt(static_cast<double>(column.units))})}));
  }
  return parts.size() == 1 ? parts.front() : layers::concat(parts);
}

}  // namespace lockstep
