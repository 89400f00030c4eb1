// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Each column gives evidence by the first field and those below it:
//
//   a text above numbers                                    for a header, certain
//   a number above texts (2019 above kinds)                 for a header
//   a text above texts that repeat, and that never have it  for a header
//   a text that stands below, too                           against it
//   numbers above numbers                                   for it only if all of them are such as people and
//                                                           programs write: 0,1,2 (pandas), years, a scale
//   anything above texts that are all different             nothing
//
// How often would a sample have a value that no other one has? About as often as the others do: the share of
// the values that occur once (Good 1953, Biometrika 40, section 4). So texts repeat where it is at most a
// tenth.
#include "tools/new/table_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/scalar.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

using Lines = std::vector<std::vector<std::string>>;

struct Column {
  std::int64_t filled = 0, numbers = 0, fractions = 0, once = 0;
  double least = 0, most = 0;
  bool counts_rows = true;
  std::map<std::string_view, std::int64_t> texts;
};

Column column_of(const Lines& lines, std::size_t index, FunctionRef<bool(std::string_view)> is_missing) {
  Column column;
  double last = 0;
  for (std::size_t row = 1; row < lines.size(); ++row) {
    if (index >= lines[row].size()) continue;
    const std::string_view field = lines[row][index];
    const auto number = parse_real(field);
    if (!number || (column.numbers > 0 && *number != last + 1)) column.counts_rows = false;
    if (field.empty() || is_missing(field)) continue;
    ++column.filled;
    if (!number) {
      ++column.texts[field];
      continue;
    }
    last = *number;
    column.least = column.numbers == 0 ? last : std::min(column.least, last);
    column.most = column.numbers == 0 ? last : std::max(column.most, last);
    ++column.numbers;
    if (last != std::floor(last)) ++column.fractions;
  }
  column.once = std::ranges::count_if(column.texts, [](const auto& text) { return text.second == 1; });
  return column;
}

/// What the numbers of the first line look like, which stand above numbers.
enum class Series { none, counted, years, scale, repeated };

Series series_of(const std::vector<double>& numbers) {
  if (numbers.size() < 2) {
    const bool year = numbers.size() == 1 && numbers[0] >= 1800 && numbers[0] <= 2100 &&
                      numbers[0] == std::floor(numbers[0]);
    return year ? Series::years : Series::none;
  }
  bool ascends = true, even = true, whole = true;
  std::vector<double> sorted = numbers;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return Series::repeated;
  const double step = numbers[1] - numbers[0];
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    whole = whole && numbers[i] == std::floor(numbers[i]);
    if (i == 0) continue;
    ascends = ascends && numbers[i] > numbers[i - 1];
    even = even && std::abs(numbers[i] - numbers[i - 1] - step) <= 1e-6 * std::abs(step);
  }
  if (whole && even && step == 1 && (numbers[0] == 0 || numbers[0] == 1)) return Series::counted;
  if (whole && ascends && numbers.front() >= 1800 && numbers.back() <= 2100) return Series::years;
  return even && numbers.size() >= 3 ? Series::scale : Series::none;
}

struct Evidence {
  std::int64_t certain = 0, likely = 0, against = 0;
  std::vector<double> numbers;  ///< of the first line, above numbers
  std::int64_t fractions = 0;   ///< below those
  bool all_outside = true;      ///< each of those is outside of its column
  bool continues = true;        ///< each of those is one less than the number below it
  bool has_fractions = false;   ///< among those
  std::string sign;             ///< a text of the first line that decides
};

Evidence evidence_of(const Lines& lines, FunctionRef<bool(std::string_view)> is_missing) {
  constexpr std::size_t kLongest = 100;
  constexpr std::int64_t kFew = 6;
  Evidence evidence;
  for (std::size_t i = 0; i < lines[0].size(); ++i) {
    const std::string& name = lines[0][i];
    const Column column = column_of(lines, i, is_missing);
    if (name.empty() || is_missing(name)) continue;
    const auto number = parse_real(name);
    const bool above_numbers = column.numbers * 2 > column.filled;
    if (number && above_numbers) {
      evidence.numbers.push_back(*number);
      evidence.fractions += column.fractions;
      evidence.has_fractions = evidence.has_fractions || *number != std::floor(*number);
      evidence.all_outside = evidence.all_outside && (*number < column.least || *number > column.most);
      evidence.continues = evidence.continues && lines.size() > 1 && i < lines[1].size() &&
                           parse_real(lines[1][i]) == std::optional(*number + 1);
    } else if (column.texts.contains(name)) {
      ++evidence.against;
    } else if (above_numbers && name.size() <= kLongest) {
      ++evidence.certain;
      evidence.sign = name;
    } else if (name.size() > kLongest || column.filled == 0) {
      continue;
    } else if ((number && column.numbers == 0) ||
               (column.filled >= kFew && column.once * 10 <= column.filled) || label_rank(name, false) ||
               feature_rank(name, false)) {
      ++evidence.likely;
      evidence.sign = name;
    }
  }
  return evidence;
}

HeaderGuess guess_by_numbers(const Evidence& evidence, Series series) {
  constexpr std::size_t kCertain = 4;
  const std::size_t count = evidence.numbers.size();
  if (series == Series::none || series == Series::repeated || evidence.continues) return {};
  if (series == Series::counted && evidence.numbers[0] == 0 && (count >= kCertain || evidence.fractions > 0))
    return {true};
  if (series == Series::years && count >= 2 && evidence.all_outside) return {true};
  if (evidence.all_outside && series != Series::counted && count >= 2)
    return {true, "its numbers are a series, and no number below is among them"};
  if (series == Series::counted && count >= 2 && evidence.numbers[0] == 0)
    return {true, "it counts from 0, as pandas names columns"};
  if (series == Series::years && count >= 2) return {false, "its numbers may be years or values"};
  return {};
}

}  // namespace

HeaderGuess guess_header(const Lines& lines, FunctionRef<bool(std::string_view)> is_missing) {
  if (lines.size() < 2) return {};
  const Evidence evidence = evidence_of(lines, is_missing);
  const Series series = series_of(evidence.numbers);
  const bool like_data = series == Series::repeated || (series == Series::none && evidence.has_fractions);
  if (evidence.certain > 0 && evidence.against == 0)
    return {true,
            like_data && evidence.certain == 1
                ? fmt::format("'{}' stands above numbers, but the other fields are numbers", evidence.sign)
                : ""};
  if (evidence.against > 0)
    return {false,
            evidence.certain + evidence.likely > 0
                ? fmt::format("the column below '{}' never has it, but others have what stands above them",
                              evidence.sign)
                : ""};
  if (evidence.likely == 0) {
    if (!evidence.numbers.empty()) return guess_by_numbers(evidence, series);
    const bool empty = std::ranges::all_of(
        lines[0], [&](const std::string& name) { return name.empty() || is_missing(name); });
    return {false, empty ? "" : "it is as unlike the others as they are among themselves"};
  }
  if (like_data)
    return {false,
            fmt::format("the column below '{}' never has it, but the other fields are numbers as below",
                        evidence.sign)};
  if (series == Series::none && evidence.numbers.size() > 0)
    return {true, fmt::format("the column below '{}' never has it", evidence.sign)};
  return {true};
}

}  // namespace lockstep
