// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/table_label.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/name_list.h"
#include "data/table_info.h"
#include "tools/new/one_hot_columns.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostClasses = 100;
using Groups = std::vector<IndicatorColumns>;

/// Whole numbers or texts of a few values, each of them often, from 0 or 1 on without gaps.
bool looks_like_classes(const TableContents& table, const ColumnContents& column) {
  const auto values = static_cast<std::int64_t>(column.values.size());
  constexpr std::int64_t kFew = 20, kOften = 5;
  if (values < 2 || values > kFew || values * kOften > table.rows || column.missing > 0) return false;
  if (column.texts > 0) return column.texts == table.rows;
  return column.whole == table.rows && (column.least == 0 || column.least == 1) &&
         column.most - column.least + 1 == static_cast<double>(values);
}

std::string names_of(const TableContents& table, const IndicatorColumns& group) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> names;
  for (std::size_t i = group.first; i < group.first + group.count; ++i)
    names.push_back(table.header && !table.columns[i].name.empty() ? table.columns[i].name
                                                                   : std::to_string(i));
  return name_list(names, kMost);
}

const IndicatorColumns* group_of(const Groups& groups, std::size_t column) {
  const auto found =
      std::ranges::find_if(groups, [&](const IndicatorColumns& group) { return group.has(column); });
  return found == groups.end() ? nullptr : &*found;
}

TableLabel all_of(const TableContents& table, const IndicatorColumns& group) {
  TableLabel label{.columns = {}, .name = group.name.empty() ? names_of(table, group) : group.name};
  for (std::size_t i = group.first; i < group.first + group.count; ++i) label.columns.push_back(i);
  return label;
}

/// A column alone. The others of its category give it away, and so do columns that were made of it.
TableLabel one_of(const TableContents& table, const Groups& groups, std::size_t column) {
  TableLabel label{.columns = {column}};
  for (const IndicatorColumns& group : groups) {
    const bool is_made_of_it = !group.name.empty() && group.name == table.columns[column].name;
    if (!group.one_each || (!group.has(column) && !is_made_of_it)) continue;
    for (std::size_t i = group.first; i < group.first + group.count; ++i)
      if (i != column) label.known_from.push_back(i);
  }
  return label;
}

TableLabel named_label(const TableContents& table, const DataQuestion& question, const Groups& groups) {
  const auto named = std::ranges::find(table.columns, question.labels, &ColumnContents::name);
  if (named != table.columns.end())
    return one_of(table, groups, static_cast<std::size_t>(named - table.columns.begin()));
  const auto group = std::ranges::find(groups, question.labels, &IndicatorColumns::name);
  if (group != groups.end()) return all_of(table, *group);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (std::to_string(i) == question.labels) return one_of(table, groups, i);
    names.push_back(table.header ? table.columns[i].name : std::to_string(i));
  }
  throw Error(ErrorKind::data, fmt::format("has no column '{}'", question.labels), question.place,
              fmt::format("Columns: {}", name_list(names)));
}

/// A column, or a group of columns, with the most usual name. Says which others have one.
std::optional<TableLabel> label_by_name(const TableContents& table, const Groups& groups,
                                        std::vector<std::string>& assumed) {
  struct Named {
    std::size_t rank;
    const IndicatorColumns* group;  ///< null: the column
    std::size_t column;
  };
  std::vector<Named> all;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (const auto rank = label_rank(table.columns[i].name, false)) all.push_back({*rank, nullptr, i});
  for (const IndicatorColumns& group : groups)
    if (const auto rank = label_rank(group.name, false)) all.push_back({*rank, &group, group.first});
  if (all.empty()) return std::nullopt;
  const auto best = std::ranges::min_element(all, {}, &Named::rank);
  const TableLabel label =
      best->group != nullptr ? all_of(table, *best->group) : one_of(table, groups, best->column);
  const auto title = [&](const Named& named) {
    return named.group != nullptr ? fmt::format("columns {}", names_of(table, *named.group))
                                  : column_title(table, named.column);
  };
  for (auto other = all.begin(); other != all.end(); ++other)
    if (other != best && std::ranges::find(label.known_from, other->column) == label.known_from.end())
      assumed.push_back(fmt::format("the label is {}, and {} {}; otherwise: --labels NAME", title(*best),
                                    title(*other), other->group != nullptr ? "are inputs" : "is an input"));
  if (best->group != nullptr && !best->group->one_each)
    assumed.push_back(fmt::format(
        "{} are labels, of which a row may have several{}; otherwise: --labels NAME", title(*best),
        best->group->none_two ? " (none has two: if one class has no column, as pandas.get_dummies(..., "
                                "drop_first=True) writes them, write all columns)"
                              : ""));
  return label;
}

/// Of a table whose last columns are a category: the label, or a feature that a program has cut into columns.
TableLabel label_of_category(const TableContents& table, const DataQuestion& question, const Groups& groups,
                             const IndicatorColumns& last, std::optional<std::size_t> before,
                             std::vector<std::string>& assumed) {
  const std::string names = names_of(table, last);
  const auto is_category = [](const IndicatorColumns& group) { return group.one_each; };
  const bool has_others = std::ranges::count_if(groups, is_category) > 1;
  bool are_labels = !before || !has_others;
  if (before && question.confirm)
    are_labels = question.confirm(
        fmt::format("Exactly one of columns {} is 1 in each row. Are they the classes to predict?", names),
        are_labels);
  else if (are_labels)
    assumed.push_back(fmt::format(
        "the labels are columns {}, the last ones, of which exactly one is 1 in each row: {} classes; "
        "otherwise: --labels {}",
        names, last.count, table.header ? "NAME" : "NUMBER"));
  else
    assumed.push_back(fmt::format(
        "the label is {}, the last one that is not 0 or 1 for a value of a category; otherwise: --labels "
        "NAME{}",
        column_title(table, *before),
        last.name.empty() ? "" : fmt::format(", or {} for the classes of columns {}", last.name, names)));
  return are_labels ? all_of(table, last) : one_of(table, groups, *before);
}

/// The last column, or the first one if that has the classes, of those that may be a label at all.
TableLabel label_by_contents(const TableContents& table, const DataQuestion& question, const Groups& groups,
                             std::vector<std::string>& assumed) {
  const auto may_be = [&](std::size_t i) {
    const ColumnContents& column = table.columns[i];
    return column.values.size() > 1 && useless(table, i).empty() && !names_rows(column.name) &&
           !names_axis(column.name) && !is_split(column) &&
           (column.texts == 0 || column.values.size() <= kMostClasses);
  };
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (names_outcome(table.columns[i].name) && may_be(i)) {
      assumed.push_back(
          fmt::format("the label is {}, by its name; otherwise: --labels NAME", column_title(table, i)));
      return one_of(table, groups, i);
    }
  std::optional<std::size_t> last, before;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const IndicatorColumns* const group = group_of(groups, i);
    if (may_be(i) || group != nullptr) last = i;
    if (may_be(i) && group == nullptr) before = i;
  }
  const auto leaves_none = [&](const IndicatorColumns& group) { return group.count == table.columns.size(); };
  const IndicatorColumns* const group = last ? group_of(groups, *last) : nullptr;
  if (group != nullptr && leaves_none(*group)) {
    assumed.push_back(
        "the label is the last column, of which the others are 1 for other values of a category");
    return {.columns = {*last}};
  }
  if (group != nullptr) return label_of_category(table, question, groups, *group, before, assumed);
  std::size_t label = last.value_or(table.columns.size() - 1);
  const bool first = label > 0 && may_be(0) && group_of(groups, 0) == nullptr &&
                     looks_like_classes(table, table.columns[0]) &&
                     !looks_like_classes(table, table.columns[label]);
  if (first) label = 0;
  assumed.push_back(fmt::format("the label is {}, {}; otherwise: --labels {}", column_title(table, label),
                                first                               ? "the first one, which has classes"
                                : label + 1 == table.columns.size() ? "the last one"
                                                                    : "the last one that may be one",
                                table.header ? "NAME" : "NUMBER"));
  return one_of(table, groups, label);
}

}  // namespace

std::string column_title(const TableContents& table, std::size_t index) {
  return column_text(static_cast<std::int64_t>(index), table.header ? table.columns[index].name : "");
}

bool is_split(const ColumnContents& column) {
  return column.values.size() > 1 && std::ranges::all_of(column.values, [](const std::string& value) {
           const auto set = set_of(value);
           return set && set->rest.empty();
         });
}

std::string useless(const TableContents& table, std::size_t index) {
  const ColumnContents& column = table.columns[index];
  if (column.missing == table.rows) return "no values";
  const auto values = static_cast<std::int64_t>(column.values.size());
  if (names_ids(column.name) && values * 2 <= table.rows &&
      values <= static_cast<std::int64_t>(kMostColumnValues))
    return "names what several rows belong to; key_column and split_key keep these in one set";
  if (column.texts > 0) return column.values.size() == 1 ? "one text in all rows" : "";
  const bool is_number_of_row = column.name.empty() || names_rows(column.name);
  constexpr std::int64_t kCertain = 20;
  const bool may_count = table.header ? is_number_of_row : index == 0;
  if (column.counts_rows && may_count && table.rows >= kCertain) return "numbers the rows";
  const auto distinct = static_cast<std::int64_t>(column.values.size());
  const bool differ = distinct >= std::min<std::int64_t>(table.rows, kMostColumnValues);
  return !column.name.empty() && is_number_of_row && differ && column.whole == table.rows ? "names the rows"
                                                                                          : "";
}

TableLabel label_of(const TableContents& table, const DataQuestion& question,
                    std::vector<std::string>& assumed) {
  const Groups groups = indicator_columns(question.place, table);
  if (!question.labels.empty()) return named_label(table, question, groups);
  if (auto label = label_by_name(table, groups, assumed)) return *label;
  return label_by_contents(table, question, groups, assumed);
}

bool TableLabel::has(std::size_t column) const { return std::ranges::find(columns, column) != columns.end(); }

}  // namespace lockstep
