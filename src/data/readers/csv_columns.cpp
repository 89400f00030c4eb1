// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/name_list.h"
#include "core/name_pattern.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostFeatures = std::int64_t{1} << 24;
/// What to do about a name that is no column's, and may be meant as a number: "'1' in quotes is a name".
std::string advice_for_number(const CsvColumnName& item, std::int64_t columns) {
  const std::optional<std::int64_t> number = csv_column_number(item.text);
  if (item.number || !number || *number >= columns) return {};
  return fmt::format("In quotes, {0} is a name; without them, it is the number of a column, from 0. ",
                     *number);
}

constexpr const char* kOneIsBoth = "A column is a feature or a label: name it in one of them.";

/// The columns that an item of an option means, in the order of the file. Throws Error(data) if there are
/// none.
std::vector<std::int64_t> columns_of(const CsvColumnName& item, const CsvFile& file, std::int64_t columns,
                                     const Params& params, std::string_view option) {
  const std::vector<std::string>& names = file.names();
  std::vector<std::int64_t> found;
  const auto add_if = [&](auto matches) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (matches(names[i])) found.push_back(static_cast<std::int64_t>(i));
  };
  if (item.number) {
    if (*item.number < columns) return {*item.number};
    file.fail(
        file.line_number(),
        fmt::format("option {} names column {}, but there are {} columns", option, *item.number, columns),
        file.delimiter_advice() + "Columns count from 0. Check the option delimiter, too.");
  }
  if (names.empty())
    throw params.error(option, fmt::format("'{}' is not a column number", item.text),
                       advice_for_number(item, columns) + "Columns count from 0; names need header: true.");
  add_if([&](const std::string& name) { return name == item.text; });
  if (found.size() > 1)
    file.fail(1, fmt::format("names {} columns '{}'", found.size(), item.text),
              fmt::format("Name the column by its number in option {}.", option));
  if (!found.empty()) return found;
  try {
    const NamePattern pattern(item.text);
    add_if([&](const std::string& name) { return pattern.matches(name); });
  } catch (const Error& error) {
    throw params.error(option, error.what_happened(), error.advice());
  }
  if (found.empty()) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string close = nearest(item.text, known);
    file.fail(
        1, fmt::format("has no column named '{}' (option {})", item.text, option),
        fmt::format("{}{}{}Its columns are {}.", file.delimiter_advice(), advice_for_number(item, columns),
                    close.empty() ? "" : fmt::format("Did you mean '{}'? ", close), name_list(known)));
  }
  return found;
}

bool contains(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::ranges::find(list, value) != list.end();
}

std::optional<float> finite_number(const Node& node) {
  if (node.kind != Node::Kind::scalar || node.quoted) return std::nullopt;
  float value = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [stop, failed] = std::from_chars(node.text.data(), end, value);
  if (failed != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_auto(const Node& node) {
  return node.kind == Node::Kind::scalar && node.text == "auto" && !node.quoted;
}

}  // namespace

CsvColumns::CsvColumns(const Params& params)
    : params_(params), o_(params.as<CsvOptions>()), missing_(o_.missing_values, params) {
  if (!o_.labels.empty() && o_.label_column.value_or(-1) != -1)
    throw params.error("labels", "says the same as label_column", "Give one of them.");
  if (!is_null(o_.classes)) {
    has_classes_ = true;
    classes_ = values_option("classes", o_.classes);
    if (o_.labels.empty() && !o_.label_column)
      throw params.error("classes", "needs a label column", "Name it with labels, or leave classes out.");
  }
  read_categories();
  read_missing();
}

std::optional<std::vector<std::string>> CsvColumns::values_option(std::string_view option, const Node& node) {
  if (is_auto(node)) {
    learns_ = true;
    return std::nullopt;
  }
  std::vector<std::string> values;
  for (const Node& item : node.items) values.push_back(item.text);
  const bool scalars =
      std::ranges::all_of(node.items, [](const Node& item) { return item.kind == Node::Kind::scalar; });
  if (node.kind != Node::Kind::list || !scalars || values.empty())
    throw params_.error(option, "must be auto, or a list of texts", "For example [red, green, blue].");
  if (std::set<std::string>(values.begin(), values.end()).size() != values.size())
    throw params_.error(option, "names a value twice", "Name each once.");
  return values;
}

void CsvColumns::read_categories() {
  const Node& map = o_.categories;
  if (is_null(map)) return;
  if (map.kind != Node::Kind::map)
    throw params_.error("categories", "must be a map of columns",
                        "For example {colour: [red, green, blue], size: auto}.");
  for (const auto& [key, node] : map.entries)
    categories_.push_back({csv_column_name(key, node), values_option("categories", node)});
}

void CsvColumns::read_missing() {
  const Node& node = o_.missing;
  const auto add = [&](std::optional<CsvColumnName> column, const Node& value) {
    if (value.kind != Node::Kind::scalar || is_null(value))
      throw params_.error("missing", "must be error, a number, or a map of columns",
                          "For example {age: 0, colour: unknown}.");
    if (value.text != "error" || value.quoted)
      fills_.push_back({std::move(column), value.text, finite_number(value)});
  };
  if (node.kind == Node::Kind::map) {
    for (const auto& [key, value] : node.entries) add(csv_column_name(key, value), value);
    return;
  }
  add(std::nullopt, node);
  if (!fills_.empty() && !fills_[0].number)
    throw params_.error("missing", fmt::format("'{}' is neither error nor a finite number", node.text),
                        "A text takes the place of missing ones in a column: {colour: unknown}.");
}

std::vector<std::int64_t> CsvColumns::label_indices(const CsvFile& file, std::int64_t columns) const {
  std::vector<std::int64_t> labels;
  for (const CsvColumnName& item : o_.labels)
    for (const std::int64_t column : columns_of(item, file, columns, params_, "labels"))
      if (!contains(labels, column)) labels.push_back(column);
  if (!o_.labels.empty() || !o_.label_column) return labels;
  const std::int64_t index = *o_.label_column == -1 ? columns - 1 : *o_.label_column;
  if (index >= columns)
    file.fail(file.line_number(), fmt::format("label_column is {}, but there are {} columns", index, columns),
              file.delimiter_advice() + "Columns count from 0; -1 is the last one.");
  return {index};
}

std::optional<std::int64_t> CsvColumns::key_index(const CsvFile& file, std::int64_t columns) const {
  if (o_.key_column.empty()) return std::nullopt;
  const std::vector<std::int64_t> found =
      columns_of(o_.key_column.front(), file, columns, params_, "key_column");
  if (o_.key_column.size() != 1 || found.size() != 1)
    throw params_.error("key_column", "must name one column", "Its texts are the keys of samples.");
  return found.front();
}

std::vector<std::int64_t> CsvColumns::feature_indices(const CsvFile& file, std::int64_t columns,
                                                      const std::vector<std::int64_t>& labels) const {
  std::vector<std::int64_t> ignored, features;
  for (const CsvColumnName& item : o_.ignore)
    for (const std::int64_t column : columns_of(item, file, columns, params_, "ignore"))
      ignored.push_back(column);
  if (o_.columns.empty())
    if (const auto key = key_index(file, columns)) ignored.push_back(*key);
  std::vector<bool> used(static_cast<std::size_t>(columns));
  for (const auto& list : {labels, ignored})
    for (const std::int64_t column : list) used[static_cast<std::size_t>(column)] = true;
  const auto add = [&](std::int64_t column) {
    if (used[static_cast<std::size_t>(column)]) return;
    used[static_cast<std::size_t>(column)] = true;
    features.push_back(column);
  };
  for (const CsvColumnName& item : o_.columns) {
    const std::vector<std::int64_t> found = columns_of(item, file, columns, params_, "columns");
    if (found.size() == 1 && contains(labels, found[0]))
      file.fail(file.line_number(),
                fmt::format("{} is a feature (option columns) and the label", file.column(found[0])),
                o_.labels.empty() ? "Name the label with labels, or write label_column: null." : kOneIsBoth);
    std::ranges::for_each(found, add);
  }
  if (o_.columns.empty())
    for (std::int64_t column = 0; column < columns; ++column) add(column);
  if (features.empty())
    file.fail(file.line_number(),
              columns == 1 ? "has one column only, which is the label: no features are left"
                           : "has no features: all columns are labels, or are ignored",
              file.delimiter_advice() + "Check the option delimiter, or set label_column: null.");
  return features;
}

void CsvColumns::add_texts(const CsvFile& file, CsvPlan& plan) const {
  for (const Texts& texts : categories_)
    for (const std::int64_t index : columns_of(texts.column, file, plan.num_columns, params_, "categories")) {
      const auto column = std::ranges::find_if(
          plan.columns, [&](const CsvColumn& own) { return !own.is_label && own.info.index == index; });
      if (column == plan.columns.end())
        file.fail(file.line_number(),
                  fmt::format("{} is no feature, but in option categories", file.column(index)),
                  "Name it in option columns; the texts of a label are the option classes.");
      column->has_texts = true;
      column->learns = !texts.values;
      column->set_values(texts.values.value_or(std::vector<std::string>{}));
    }
  if (!has_classes_) return;
  const auto label = std::ranges::find(plan.columns, true, &CsvColumn::is_label);
  if (std::ranges::count(plan.columns, true, &CsvColumn::is_label) != 1)
    throw params_.error("classes", "needs one label column, but there are several",
                        "Several columns are targets, which are numbers.");
  label->has_texts = true;
  label->learns = !classes_;
  label->set_values(classes_.value_or(std::vector<std::string>{}));
}

void CsvColumns::fill(CsvColumn& column, const TableInfo::Column& as_trained) const {
  const auto means = [&](const CsvColumnName& item) {
    return item.number ? *item.number == as_trained.index
                       : item.text == as_trained.name || NamePattern(item.text).matches(as_trained.name);
  };
  for (const Fill& fill : fills_) {
    if (fill.column ? !means(*fill.column) : column.has_texts) continue;
    if (!column.has_texts && !fill.number)
      throw params_.error(
          "missing", fmt::format("'{}' is no finite number, as {} needs", fill.text, name_of(as_trained)),
          "Columns that are not in option categories hold numbers.");
    if (column.has_texts)
      column.text_if_missing = fill.text;
    else
      column.number_if_missing = fill.number;
  }
}

CsvPlan CsvColumns::plan(const CsvFile& file, std::int64_t columns) const {
  if (!file.names().empty() && static_cast<std::int64_t>(file.names().size()) != columns)
    file.fail(file.line_number(),
              fmt::format("has {} columns, but the header has {} names", columns, file.names().size()),
              file.delimiter_advice() +
                  "Every row needs the columns of the header. Check the options delimiter and quote.");
  CsvPlan plan{.num_columns = columns};
  plan.key = key_index(file, columns);
  const std::vector<std::int64_t> labels = label_indices(file, columns);
  const auto add = [&](std::int64_t index, bool is_label) {
    CsvColumn column{.is_label = is_label};
    column.info.index = index;
    if (!file.names().empty()) column.info.name = file.names()[static_cast<std::size_t>(index)];
    plan.columns.push_back(std::move(column));
  };
  for (const std::int64_t index : feature_indices(file, columns, labels)) add(index, false);
  for (const std::int64_t index : labels) add(index, true);
  add_texts(file, plan);
  for (const Fill& fill : fills_)
    if (fill.column) columns_of(*fill.column, file, columns, params_, "missing");  // there is one
  for (CsvColumn& column : plan.columns)
    if (!column.is_label) fill(column, column.info);
  plan.arrange(!missing_.has_numbers());
  return plan;
}

CsvPlan CsvColumns::plan_of_input(const CsvFile& file, std::int64_t columns, const TableInfo& table,
                                  bool labels) const {
  const std::vector<std::string>& names = file.names();
  const auto unnamed = [](const TableInfo::Column& column) { return column.name.empty(); };
  const bool by_name = !names.empty() && std::ranges::none_of(table.features, unnamed);
  const auto num_labels = static_cast<std::int64_t>(table.labels.size());
  const bool with_labels = columns == table.num_columns;
  if (!by_name && !with_labels && columns != table.num_columns - num_labels)
    file.fail(file.line_number(),
              fmt::format("has {} columns, but the model takes {} features{}", columns, table.features.size(),
                          table.num_columns == static_cast<std::int64_t>(table.features.size()) + num_labels
                              ? ""
                              : fmt::format(" of {} columns", table.num_columns)),
              file.delimiter_advice() +
                  "Give a file with the columns of the training data, with or without its label columns.");
  const auto index_of = [&](const TableInfo::Column& column) -> std::int64_t {
    if (!by_name)
      return column.index - (with_labels ? 0 : std::ranges::count_if(table.labels, [&](const auto& label) {
               return label.index < column.index;
             }));
    const auto found = std::ranges::find(names, column.name);
    return found == names.end() ? -1 : found - names.begin();
  };
  CsvPlan plan{.num_columns = columns};
  const auto add = [&](const TableInfo::Column& from, std::int64_t index, bool is_label) {
    CsvColumn column{.is_label = is_label, .has_texts = !from.values.empty(), .to_predict = true};
    column.info = {index, from.name, {}};
    column.set_values(from.values);
    if (!is_label) fill(column, from);
    plan.columns.push_back(std::move(column));
  };
  for (const TableInfo::Column& column : table.features) {
    const std::int64_t index = index_of(column);
    if (index < 0)
      file.fail(1, fmt::format("has no column named '{}', which the model takes", column.name),
                file.delimiter_advice() +
                    "Give a file with the columns of the training data; their order is free.");
    add(column, index, false);
  }
  const bool all_labels =
      by_name ? std::ranges::all_of(table.labels, [&](const auto& label) { return index_of(label) >= 0; })
              : with_labels;
  if (labels && all_labels)
    for (const TableInfo::Column& column : table.labels) add(column, index_of(column), true);
  plan.arrange(!missing_.has_numbers());
  return plan;
}

std::int64_t CsvColumn::width() const {
  return is_label || !has_texts ? 1 : static_cast<std::int64_t>(info.values.size());
}

void CsvColumn::set_values(std::vector<std::string> values) {
  info.values = std::move(values);
  place.clear();
  for (std::size_t i = 0; i < info.values.size(); ++i)
    place.emplace(info.values[i], static_cast<std::int64_t>(i));
}

bool CsvPlan::learns() const { return std::ranges::any_of(columns, &CsvColumn::learns); }

void CsvPlan::arrange(bool may_be_plain) {
  num_features = num_labels = 0;
  for (CsvColumn& column : columns) {
    std::int64_t& count = column.is_label ? num_labels : num_features;
    column.slot = count;
    count += column.width();
    if (count > kMostFeatures)
      throw Error(ErrorKind::data, fmt::format("samples of more than {} values", kMostFeatures),
                  name_of(column.info), "Fewer values of categories are enough.");
  }
  plain.clear();
  std::int64_t last_feature = -1, last_label = -1;
  for (const CsvColumn& column : columns) {
    std::int64_t& last = column.is_label ? last_label : last_feature;
    if (!may_be_plain || column.has_texts || column.info.index < last) return;
    last = column.info.index;
  }
  std::vector<Use> uses(static_cast<std::size_t>(num_columns), Use::ignored);
  for (const CsvColumn& column : columns)
    uses[static_cast<std::size_t>(column.info.index)] = column.is_label ? Use::label : Use::feature;
  for (const Use use : uses) {
    if (plain.empty() || plain.back().use != use) plain.push_back({use, 0});
    ++plain.back().count;
  }
}

TableInfo CsvPlan::table() const {
  TableInfo table{.num_columns = num_columns};
  for (const CsvColumn& column : columns)
    (column.is_label ? table.labels : table.features).push_back(column.info);
  return table;
}

std::vector<std::string> CsvPlan::class_names() const {
  for (const CsvColumn& column : columns)
    if (column.is_label && column.has_texts) return column.info.values;
  return {};
}

std::string csv_list_key(const TableInfo::Column& column) {
  return column.name.empty() ? fmt::format("#{}", column.index) : column.name;
}

}  // namespace lockstep
