// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_row_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/name_list.h"

namespace lockstep {

namespace {

constexpr std::size_t kShown = 40;  ///< characters of a field in messages

/// Reads a number that ends at the delimiter or at the end, and blanks around it. Returns where it ends; null
/// if there is none, or it is not finite.
template <typename T>
inline const char* read_number(const char* at, const char* end, char delimiter, T& value) {
  // The common case, exact in a float: only digits, at most seven.
  const char* digit = at;
  std::int32_t whole = 0;
  for (; digit != end && *digit >= '0' && *digit <= '9' && digit - at < 7; ++digit)
    whole = whole * 10 + (*digit - '0');
  if (digit != at && (digit == end || *digit == delimiter)) {
    value = static_cast<T>(whole);
    return digit;
  }
  const auto is_space = [delimiter](char c) { return (c == ' ' || c == '\t') && c != delimiter; };
  while (at != end && is_space(*at)) ++at;
  if (end - at > 1 && *at == '+' && at[1] != '-') ++at;
  T number{};
  auto [stop, code] = std::from_chars(at, end, number);
  if (code == std::errc::result_out_of_range) {  // overflow, or underflow, which is zero
    long double wide{};
    code = std::from_chars(at, end, wide).ec;
    number = static_cast<T>(wide);
  }
  if (code != std::errc{} || !std::isfinite(number)) return nullptr;
  while (stop != end && is_space(*stop)) ++stop;
  if (stop != end && *stop != delimiter) return nullptr;
  value = number;
  return stop;
}

/// `written`, which has this decimal mark, with a point and without the separators of thousands; empty if
/// these stand elsewhere than between groups of three digits, or if it has a point that is neither.
std::string with_point(std::string_view written, char decimal, const std::optional<char>& thousands) {
  std::string field(written);
  if (thousands == ' ')  // also those that do not end a line
    for (const std::string_view space : {"\xC2\xA0", "\xE2\x80\xAF"})
      for (std::size_t at = 0; (at = field.find(space, at)) != std::string::npos;)
        field.replace(at, space.size(), " ");
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string text;
  std::size_t at = 0, digits = 0;
  bool has_groups = false;
  if (field.starts_with('-') || field.starts_with('+')) text += field[at++];
  for (; at < field.size() && (is_digit(field[at]) || field[at] == thousands); ++at) {
    if (is_digit(field[at])) {
      text += field[at];
      ++digits;
      continue;
    }
    if (digits == 0 || digits > 3 || (has_groups && digits != 3)) return {};
    has_groups = true;
    digits = 0;
  }
  if (has_groups && digits != 3) return {};
  if (at < field.size() && field[at] == decimal) {
    text += '.';
    ++at;
  }
  const std::string_view rest = std::string_view(field).substr(at);
  if (rest.find_first_of(".,") != std::string_view::npos) return {};
  return text.append(rest);
}

/// As pandas, R and spreadsheets write columns of yes and no.
std::optional<bool> truth_of(std::string_view field) {
  if (field == "True" || field == "TRUE" || field == "true") return true;
  if (field == "False" || field == "FALSE" || field == "false") return false;
  return std::nullopt;
}

bool fits_float(double value) { return std::isfinite(static_cast<float>(value)); }

}  // namespace

bool CsvRowParser::parse_plain(std::string_view line, float* features, double* labels) const {
  const char *at = line.data(), *const end = at + line.size();
  const char delimiter = delimiter_;
  bool at_end = false;  // the last field is read
  const auto pass_delimiter = [&] {
    at_end = at == end;
    at += at_end ? 0 : 1;
  };
  for (const CsvPlan::Run& run : plan_.plain)
    for (std::int64_t i = 0; i < run.count; ++i) {
      if (at_end) return false;
      if (run.use == CsvPlan::Use::feature)
        at = read_number(at, end, delimiter, *features++);
      else if (run.use == CsvPlan::Use::label)
        at = read_number(at, end, delimiter, *labels++);
      else
        at = std::find(at, end, delimiter);
      if (at == nullptr) return false;
      pass_delimiter();
    }
  return at_end;
}

void CsvRowParser::split(const CsvRow& row) {
  file_.split(row, fields_);
  if (static_cast<std::int64_t>(fields_.size()) == plan_.num_columns) return;
  file_.fail(file_.line_number(),
             fmt::format("has {} columns, but the rows before it have {}", fields_.size(), plan_.num_columns),
             file_.delimiter_advice() +
                 "Every row needs the same number of columns; a truncated file ends in the middle of a row.");
}

void CsvRowParser::parse_any(const CsvRow& row, float* features, double* labels) {
  split(row);
  std::fill_n(features, plan_.num_features, 0.0F);
  for (const CsvColumn& column : plan_.columns) {
    const std::string_view field = fields_[static_cast<std::size_t>(column.info.index)];
    if (column.is_label)
      labels[column.slot] = column.has_texts ? static_cast<double>(place_of_text(column, field))
                                             : number<double>(column, field);
    else if (column.has_texts)
      features[column.slot + place_of_text(column, field)] = 1;
    else
      features[column.slot] = number<float>(column, field);
  }
}

template <typename T>
T CsvRowParser::number(const CsvColumn& column, std::string_view field) const {
  if (missing_.is_missing(field)) {
    if (!column.number_if_missing) fail_missing(column, field);
    return static_cast<T>(*column.number_if_missing);
  }
  std::string changed;
  std::string_view text = field;
  if (!may_be_plain_) {
    changed = with_point(field, file_.decimal(), file_.thousands());
    text = changed;
  }
  T value{};
  const char* const end = text.data() + text.size();
  if (!text.empty() && read_number(text.data(), end, '\0', value) == end) return value;
  if (const std::optional<bool> truth = truth_of(field)) return static_cast<T>(*truth);
  fail_number(column, field);
}

std::string_view CsvRowParser::text_of(const CsvColumn& column, std::string_view field) const {
  if (column.place.contains(field) || !missing_.is_missing(field)) return field;
  return column.text_if_missing ? std::string_view(*column.text_if_missing) : std::string_view{};
}

std::int64_t CsvRowParser::place_of_text(const CsvColumn& column, std::string_view field) const {
  const std::string_view text = text_of(column, field);
  if (const auto found = column.place.find(text); found != column.place.end()) return found->second;
  if (missing_.is_missing(field) && !column.text_if_missing) fail_missing(column, field);
  const std::string known = name_list(column.info.values);
  const char* const what = column.is_label ? "classes" : "values";
  file_.fail(file_.line_number(),
             fmt::format("{}: '{}' is none of the {} {} ({})", file_.column(column.info.index),
                         text.substr(0, kShown), column.info.values.size(), what, known),
             column.to_predict ? "The model has not seen it. Correct the row or leave it out; with --set "
                                 "data.bad_records=skip its predictions are NaN."
             : column.learns
                 ? fmt::format("The {0} are those of the training set: the model has not seen this one. "
                               "Leave the row out, or list all {0} in the option {1}.",
                               what, column.is_label ? "classes" : "categories")
                 : fmt::format("Correct the row, or add it to the option {}: the model then has one more.",
                               column.is_label ? "classes" : "categories"));
}

void CsvRowParser::fail_missing(const CsvColumn& column, std::string_view field) const {
  const std::string name = file_.column(column.info.index);
  file_.fail(file_.line_number(),
             field.empty() ? fmt::format("{} is empty", name)
                           : fmt::format("{}: '{}' means a missing value", name, field.substr(0, kShown)),
             column.is_label ? "Every row needs a label: leave the row out."
                             : "The option missing says what takes the place of missing values; the option "
                               "ignore passes over a column.");
}

void CsvRowParser::fail_number(const CsvColumn& column, std::string_view field) const {
  const std::string name = file_.column(column.info.index);
  double value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, code] = std::from_chars(field.data(), end, value);
  const std::string_view shown = field.substr(0, kShown);
  if (stop == end && code != std::errc::invalid_argument && (code != std::errc{} || !fits_float(value)))
    file_.fail(file_.line_number(), fmt::format("{}: '{}' is not a finite number", name, shown),
               "Remove or repair the row; NaN, Inf and numbers beyond float32 cannot be trained on.");
  if (const char* const advice = advice_for_marks(field))
    file_.fail(file_.line_number(), fmt::format("{}: '{}' is not a number", name, shown),
               file_.delimiter_advice() + advice);
  file_.fail(
      file_.line_number(), fmt::format("{}: '{}' is not a number", name, shown),
      file_.delimiter_advice() +
          (file_.line_number() == file_.first_line() ? "If the first line contains names, set header: true."
           : column.is_label ? "If labels are names of classes, set classes: auto, or list them."
                             : "Check the row and the option delimiter. Texts are columns of the option "
                               "categories, or are passed over with ignore."));
}

/// For digits with points, commas and other marks between them; null for other texts.
const char* CsvRowParser::advice_for_marks(std::string_view field) const {
  const bool are_digits = field.find_first_of("0123456789") != std::string_view::npos &&
                          field.find_first_not_of("+-0123456789.,' _") == std::string_view::npos;
  if (!are_digits || field.find_first_of(".,' _") == std::string_view::npos) return nullptr;
  if (field.find(',') != std::string_view::npos && file_.decimal() == '.' && !file_.thousands())
    return "If the comma is the decimal mark, set decimal: \",\"; if it separates thousands, thousands: "
           "\",\".";
  if (file_.decimal() == ',' && !file_.thousands())
    return "The decimal mark of the file is a comma. If a point or another mark separates thousands, set the "
           "option thousands; if the mark is a point, set decimal: \".\".";
  return "The options decimal and thousands say which marks numbers have: thousands stand between groups of "
         "three digits.";
}

}  // namespace lockstep
