// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lines of numbers, plain or gzip. One line is one sample; one of its columns may be the label. Accepted:
// "\r\n", spaces and tabs around numbers, a leading "+", a byte order mark, blank lines at the end.
// Everything else is an error with line and column.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/device.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

constexpr std::array kOptions = with_common_options(
    std::array{ParamSpec{"path", ParamType::string, kRequired, "",
                         "the file, plain or gzip; relative to the config file's folder"},
               ParamSpec{"header", ParamType::boolean, "false", "", "the first line contains column names"},
               ParamSpec{"delimiter", ParamType::string, ",", "one character", "separator of columns"},
               ParamSpec{"label_column", ParamType::integer, "-1", ">= -1 or null",
                         "0-based; -1: the last; null: no label"},
               ParamSpec{"shape", ParamType::integers, "null", "> 0; channels last",
                         "shape of a sample; null: one axis, [columns]"}});

constexpr std::int64_t kNoLabel = -2;

struct CsvFormat {
  char delimiter;
  bool header;
  std::int64_t label_column;  ///< the option's value; kNoLabel: none
};

CsvFormat format_options(const Params& params) {
  const std::string& delimiter = params.string("delimiter");
  if (delimiter.size() != 1 || std::strchr("+-.0123456789\r\n", delimiter[0]) != nullptr ||
      std::isalpha(static_cast<unsigned char>(delimiter[0])) != 0)
    throw params.error("delimiter", "must be one character that cannot be part of a number",
                       "Usual ones are \",\", \";\" and \"\\t\" (in double quotes).");
  return {delimiter[0], params.boolean("header"),
          params.has("label_column") ? params.integer("label_column") : kNoLabel};
}

std::int64_t count_columns(std::string_view line, char delimiter) {
  return std::count(line.begin(), line.end(), delimiter) + 1;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

/// The data rows of a file, in order.
class CsvFile {
 public:
  CsvFile(const std::string& path, const CsvFormat& format) : format_(format), file_(path), lines_(file_) {}

  /// Sets `line` to the next data row; false at the end. A blank line is an error only if a row follows it.
  bool next_row(std::string_view& line) {
    if (std::string_view names; format_.header && lines_.line_number() == 0 && !lines_.next(names))
      return false;
    if (!lines_.next(line)) return false;
    if (!is_blank(line)) return true;
    const std::int64_t blank = lines_.line_number();
    while (lines_.next(line))
      if (!is_blank(line)) fail(blank, "is blank, but rows follow", "Remove the blank line.");
    return false;
  }

  /// Call at the first data row that is read. `label_index` is -1 without a label.
  void set_columns(std::int64_t columns, std::int64_t label_index) {
    columns_ = columns;
    label_index_ = label_index;
  }

  /// Appends the numbers of one row.
  void parse(std::string_view line, std::vector<float>& features, std::vector<double>& labels) const {
    const char *at = line.data(), *const end = at + line.size();
    for (std::int64_t column = 0;; ++column) {
      if (column == columns_) fail_columns(line);
      if (column == label_index_) {
        labels.push_back(number<double>(at, end, column));
      } else {
        features.push_back(number<float>(at, end, column));
      }
      if (at == end) {
        if (column + 1 != columns_) fail_columns(line);
        return;
      }
      ++at;  // the delimiter
    }
  }

  std::int64_t line_number() const { return lines_.line_number(); }
  std::int64_t columns() const { return columns_; }

  [[noreturn]] void fail(std::int64_t line, std::string what, std::string advice) const {
    throw Error(ErrorKind::data, std::move(what), fmt::format("{}, line {}", file_.path(), line),
                std::move(advice));
  }

 private:
  bool is_space(char c) const { return (c == ' ' || c == '\t') && c != format_.delimiter; }

  /// Reads one column and leaves `at` at the delimiter or at the end.
  template <typename T>
  T number(const char*& at, const char* end, std::int64_t column) const {
    const char* const start = at;
    // The common case, exact in a float: only digits, at most seven.
    const char* digit = at;
    std::int32_t whole = 0;
    for (; digit != end && *digit >= '0' && *digit <= '9' && digit - start < 7; ++digit)
      whole = whole * 10 + (*digit - '0');
    if (digit != start && (digit == end || *digit == format_.delimiter)) {
      at = digit;
      return static_cast<T>(whole);
    }
    while (at != end && is_space(*at)) ++at;
    if (end - at > 1 && *at == '+' && at[1] != '-') ++at;
    T value{};
    auto [stop, code] = std::from_chars(at, end, value);
    if (code == std::errc::result_out_of_range) {  // overflow, or underflow, which is zero
      long double wide{};
      code = std::from_chars(at, end, wide).ec;
      value = static_cast<T>(wide);
    }
    const bool parsed = code == std::errc{};
    while (parsed && stop != end && is_space(*stop)) ++stop;
    if (!parsed || (stop != end && *stop != format_.delimiter) || !std::isfinite(value))
      fail_number(std::string_view(start, static_cast<std::size_t>(end - start)), column,
                  parsed && !std::isfinite(value));
    at = stop;
    return value;
  }

  [[noreturn]] void fail_number(std::string_view rest, std::int64_t column, bool not_finite) const {
    std::string_view field = rest.substr(0, rest.find(format_.delimiter));
    if (is_blank(field))
      fail(line_number(), fmt::format("column {} is empty", column + 1),
           "Every column needs a number in every row.");
    if (not_finite)
      fail(line_number(),
           fmt::format("column {}: '{}' is not a finite number", column + 1, field.substr(0, 40)),
           "Remove or repair the row; NaN, Inf and numbers beyond float32 cannot be trained on.");
    fail(line_number(), fmt::format("column {}: '{}' is not a number", column + 1, field.substr(0, 40)),
         line_number() == 1 ? "If the first line contains names, set header: true."
                            : "Check the row and the option delimiter.");
  }

  [[noreturn]] void fail_columns(std::string_view line) const {
    fail(line_number(),
         fmt::format("has {} columns, but the rows before it have {}", count_columns(line, format_.delimiter),
                     columns_),
         "Every row needs the same number of columns; a truncated file ends in the middle of a row.");
  }

  CsvFormat format_;
  InputFile file_;
  LineReader lines_;
  std::int64_t columns_ = 0, label_index_ = -1;
};

/// The index of the label column; -1 if there is none.
std::int64_t label_index(const CsvFile& file, const CsvFormat& format, std::int64_t columns) {
  if (format.label_column == kNoLabel) return -1;
  const std::int64_t index = format.label_column == -1 ? columns - 1 : format.label_column;
  if (index >= columns)
    file.fail(file.line_number(), fmt::format("label_column is {}, but there are {} columns", index, columns),
              "Columns count from 0; -1 is the last one.");
  if (columns == 1)
    file.fail(file.line_number(), "has one column only, which is the label: no features are left",
              "Check the option delimiter, or set label_column: null.");
  return index;
}

Shape shape_option(const Params& params, const CsvFile& file, std::int64_t columns) {
  if (!params.has("shape")) return {columns};
  const std::vector<std::int64_t>& extents = params.integers("shape");
  if (extents.empty() || extents.size() >= Shape::kMaxRank ||
      std::any_of(extents.begin(), extents.end(),
                  [](std::int64_t extent) { return extent < 1 || extent > 1 << 30; }))
    throw params.error("shape", fmt::format("must be 1 to {} whole numbers above 0", Shape::kMaxRank - 1),
                       "For 8 x 8 pixels of one channel write [8, 8, 1].");
  const Shape shape{std::span(extents)};
  if (shape.num_elements() != columns)
    file.fail(file.line_number(),
              fmt::format("has {} feature columns, but the shape {} needs {}", columns, shape.to_string(),
                          shape.num_elements()),
              "Correct the option shape or label_column.");
  return shape;
}

/// Reads the rows; appends labels to `labels`. Calls `arrange(columns)` at the first row, which must call
/// file.set_columns() and return the shape of a sample.
template <typename Arrange>
DatasetParts read_rows(CsvFile& file, const std::string& path, const std::optional<RowRange>& rows,
                       const CsvFormat& format, const Params& params, std::vector<double>& labels,
                       Arrange arrange) {
  DatasetParts parts;
  parts.source = path;
  parts.record_word = "line";
  parts.transform = transform_options(params);
  std::vector<float> features;
  std::int64_t row = 0;
  for (std::string_view line; (!rows || row < rows->last) && file.next_row(line); ++row) {
    if (rows && row < rows->first) continue;
    if (parts.size++ == 0) {
      parts.first_record = file.line_number();
      parts.feature_shape = arrange(count_columns(line, format.delimiter));
    }
    file.parse(line, features, labels);
  }
  if (row == 0)
    throw Error(ErrorKind::data, "holds no data rows", path,
                "Check the path; an empty file may be a failed download.");
  checked_rows(rows, row, path);
  parts.features = Buffer(cpu_device(), features.size() * sizeof(float));
  std::copy(features.begin(), features.end(), parts.features.as<float>().begin());
  return parts;
}

std::unique_ptr<Dataset> make(const Params& params, const std::string& base_directory) {
  const std::string path = resolved_path(params.string("path"), base_directory);
  const CsvFormat format = format_options(params);
  const std::optional<RowRange> rows = rows_option(params);
  CsvFile file(path, format);
  std::vector<double> labels;
  DatasetParts parts = read_rows(file, path, rows, format, params, labels, [&](std::int64_t columns) {
    const std::int64_t label = label_index(file, format, columns);
    file.set_columns(columns, label);
    return shape_option(params, file, label < 0 ? columns : columns - 1);
  });
  parts.num_label_columns = labels.empty() ? 0 : 1;
  set_labels_by_value(parts, labels);
  return std::make_unique<Dataset>(std::move(parts));
}

std::unique_ptr<Dataset> make_features(const Params& params, const std::string& path,
                                       const Shape& feature_shape, const TextInfo* /*text*/) {
  const CsvFormat format = format_options(params);
  const std::int64_t features = feature_shape.num_elements();
  CsvFile file(path, format);
  std::vector<double> dropped;
  return std::make_unique<Dataset>(
      read_rows(file, path, std::nullopt, format, params, dropped, [&](std::int64_t columns) {
        const bool labelled = columns == features + 1 && format.label_column != kNoLabel;
        if (columns != features && !labelled)
          file.fail(
              file.line_number(),
              fmt::format("has {} columns, but the model takes {} features (samples of {})", columns,
                          features, feature_shape.to_string()),
              "Give a file with the feature columns of the training data, with or without its label column.");
        file.set_columns(columns, labelled ? label_index(file, format, columns) : -1);
        return feature_shape;
      }));
}

}  // namespace

ReaderEntry csv_reader() { return {"csv", "lines of numbers, plain or gzip", kOptions, make, make_features}; }

}  // namespace lockstep
