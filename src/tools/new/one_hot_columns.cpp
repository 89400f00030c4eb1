// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/one_hot_columns.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <string_view>

#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

constexpr std::string_view kSeparators = "_.-= :";

/// 0 and 1, or False and True as pandas writes them. All 0 is what a class without samples has.
bool is_yes_or_no(const TableContents& table, const ColumnContents& column) {
  if (column.whole == table.rows) return column.least >= 0 && column.most <= 1;
  return column.texts == table.rows && std::ranges::all_of(column.values, [](const std::string& value) {
           const std::string word = lower_case(value);
           return word == "true" || word == "false";
         });
}

/// Of a column that has nothing but 0 and 1, however they are written: 1, 1.0, +1, True.
bool is_yes(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  return field.starts_with('1') || field.starts_with('t') || field.starts_with('T');
}

/// What a group of columns has in the rows that were looked at.
struct Candidate {
  IndicatorColumns columns;
  bool one_each = true;
  std::vector<bool> has_one;  ///< by column: in some row

  bool is_category() const { return one_each && std::ranges::count(has_one, true) > 1; }
};

bool begins_with(const ColumnContents& column, std::string_view prefix) {
  return column.name.starts_with(prefix) && column.name.size() > prefix.size();
}

/// Runs of at least two columns whose names have the same begin up to a separator: each is as long as it can
/// be.
std::vector<Candidate> runs_of_names(const TableContents& table, const std::vector<bool>& yes_or_no) {
  std::vector<Candidate> runs;
  for (std::size_t first = 0; first < yes_or_no.size(); ++first) {
    if (!yes_or_no[first]) continue;
    const std::string& name = table.columns[first].name;
    for (std::size_t at = name.find_first_of(kSeparators, 1); at != std::string::npos;
         at = name.find_first_of(kSeparators, at + 1)) {
      const std::string_view prefix = std::string_view(name).substr(0, at + 1);
      if (first > 0 && yes_or_no[first - 1] && begins_with(table.columns[first - 1], prefix)) continue;
      std::size_t end = first;
      while (end < yes_or_no.size() && yes_or_no[end] && begins_with(table.columns[end], prefix)) ++end;
      if (end - first > 1)
        runs.push_back(
            {{first, end - first, std::string(prefix.substr(0, at))}, true, std::vector<bool>(end - first)});
    }
  }
  return runs;
}

/// The last columns of a table, whatever their names are: those from the first place on where a row has its
/// last 1, if no row has another 1 there.
class LastColumns {
 public:
  explicit LastColumns(std::size_t first) : first_(first) {}

  void add(const std::vector<std::size_t>& ones) {
    const auto count = ones.size();
    if (count == 0 || ones[count - 1] < first_) has_none_ = true;
    if (has_none_) return;
    least_last_ = std::min(least_last_, ones[count - 1]);
    if (count > 1) most_other_ = std::max(most_other_, ones[count - 2] + 1);
  }

  /// Without columns if there is no such category.
  IndicatorColumns found(std::size_t columns) const {
    if (has_none_ || least_last_ < std::max(first_, most_other_) || least_last_ + 2 > columns) return {};
    return {least_last_, columns - least_last_, "", true};
  }

 private:
  const std::size_t first_;
  bool has_none_ = false;
  std::size_t least_last_ = std::numeric_limits<std::size_t>::max(), most_other_ = 0;
};

}  // namespace

std::vector<IndicatorColumns> indicator_columns(const std::string& path, const TableContents& table) {
  const std::size_t columns = table.columns.size();
  std::vector<bool> yes_or_no(columns);
  std::size_t many = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    yes_or_no[i] = is_yes_or_no(table, table.columns[i]);
    many += yes_or_no[i] ? 1 : 0;
  }
  if (many < 2) return {};
  std::vector<Candidate> candidates = runs_of_names(table, yes_or_no);
  std::size_t end = columns;
  while (end > 0 && yes_or_no[end - 1]) --end;
  LastColumns last(end);
  std::vector<std::size_t> ones;
  for_each_table_row(path, table, [&](std::span<const std::string_view> fields) {
    ones.clear();
    for (std::size_t i = 0; i < columns; ++i)
      if (yes_or_no[i] && is_yes(fields[i])) ones.push_back(i);
    last.add(ones);
    for (Candidate& candidate : candidates) {
      const auto from = std::ranges::lower_bound(ones, candidate.columns.first);
      const auto to = std::ranges::lower_bound(ones, candidate.columns.first + candidate.columns.count);
      candidate.one_each = candidate.one_each && to - from == 1;
      candidate.columns.none_two = candidate.columns.none_two && to - from <= 1;
      for (auto one = from; one != to; ++one) candidate.has_one[*one - candidate.columns.first] = true;
    }
  });

  // Of groups that share columns the largest, and of those with the same columns that of the shortest name.
  std::ranges::stable_sort(candidates, std::ranges::greater{},
                           [](const Candidate& candidate) { return candidate.columns.count; });
  std::vector<IndicatorColumns> found;
  const auto add = [&](const IndicatorColumns& group) {
    const auto meets = [&](const IndicatorColumns& other) {
      return group.has(other.first) || other.has(group.first);
    };
    if (group.count > 1 && std::ranges::none_of(found, meets)) found.push_back(group);
  };
  for (Candidate& candidate : candidates) {
    candidate.columns.one_each = candidate.is_category();
    if (candidate.columns.one_each || label_rank(candidate.columns.name, false)) add(candidate.columns);
  }
  constexpr std::int64_t kCertain = 10;  // rows: of fewer, columns may be so by chance
  if (table.rows >= kCertain) add(last.found(columns));
  std::ranges::sort(found, {}, &IndicatorColumns::first);
  return found;
}

}  // namespace lockstep
