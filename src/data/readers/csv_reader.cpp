// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lines of numbers, plain or gzip. One line is one sample; one of its columns may be the label. Accepted:
// "\r\n", spaces and tabs around numbers, a leading "+", a byte order mark, blank lines at the end.
// Everything else is an error with line and column.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/device.h"
#include "core/sizes.h"
#include "data/data_files.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

constexpr std::array kOptions = with_common_options(
    std::array{ParamSpec{"path", ParamType::strings, kRequired, "",
                         "the file, plain or gzip; a list or a pattern (part*.csv) of files is read as one; "
                         "relative to the config file's folder",
                         Change::place},
               ParamSpec{"header", ParamType::boolean, "false", "", "the first line contains column names"},
               ParamSpec{"delimiter", ParamType::string, ",", "one character", "separator of columns"},
               ParamSpec{"label_column", ParamType::integer, "-1", "[-1, 1e9] or null",
                         "0-based; -1: the last; null: no label"},
               ParamSpec{"shape", ParamType::integers, "null", "[1, 1e12]; channels last",
                         "shape of a sample; null: one axis, [columns]"}});

constexpr std::int64_t kNoLabel = -2;
constexpr const char* kSameColumns = "All files of a data set need the same columns in the same order.";

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
    if (format_.header && lines_.line_number() == 0) {
      std::string_view names;
      if (!lines_.next(names)) return false;
      names_ = names;
    }
    if (!lines_.next(line)) return false;
    if (!is_blank(line)) return true;
    const std::int64_t blank = lines_.line_number();
    while (lines_.next(line))
      if (!is_blank(line)) fail(blank, "is blank, but rows follow", "Remove the blank line.");
    return false;
  }

  /// Call at the first data row that is read. `label_index` is -1 without a label; with `skip_labels` its
  /// column may hold anything.
  void set_columns(std::int64_t columns, std::int64_t label_index, bool skip_labels = false) {
    columns_ = columns;
    label_index_ = label_index;
    skip_labels_ = skip_labels;
  }

  /// Appends the numbers of one row.
  void parse(std::string_view line, std::vector<float>& features, std::vector<double>& labels) const {
    const char *at = line.data(), *const end = at + line.size();
    for (std::int64_t column = 0;; ++column) {
      if (column == columns_) fail_columns(line);
      if (column == label_index_ && skip_labels_) {
        at = std::find(at, end, format_.delimiter);
      } else if (column == label_index_) {
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

  /// The header line; empty before the first row, and without one.
  const std::string& names() const { return names_; }
  const std::string& path() const { return file_.path(); }
  std::int64_t line_number() const { return lines_.line_number(); }
  std::int64_t label_index() const { return label_index_; }
  bool skips_labels() const { return skip_labels_; }

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
  std::string names_;
  std::int64_t columns_ = 0, label_index_ = -1;
  bool skip_labels_ = false;
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
  const std::optional<std::int64_t> needed = product_up_to(kMaxExtentProduct, extents);
  if (needed != columns)
    file.fail(file.line_number(),
              fmt::format("has {} feature columns, but the shape {} needs {}", columns,
                          fmt::join(extents, "x"), needed ? std::to_string(*needed) : "more than 2^59"),
              "Correct the option shape or label_column.");
  return Shape{std::span(extents)};
}

/// What the first of several files sets for the others.
struct CsvColumns {
  std::string path, names;
  std::int64_t count = 0, label = -1;
  bool skip_labels = false;

  /// Throws unless the header of another file has the same names.
  void check_names(const CsvFile& file, char delimiter) const {
    if (file.names() == names) return;
    const auto name = [&](const std::string& line, std::int64_t column) {
      std::size_t begin = 0;
      for (; column > 0 && begin != std::string::npos; --column) begin = line.find(delimiter, begin) + 1;
      return line.substr(begin, std::min(line.find(delimiter, begin), line.size()) - begin);
    };
    const std::int64_t columns = count_columns(names, delimiter);
    if (count_columns(file.names(), delimiter) != columns)
      file.fail(1,
                fmt::format("names {} columns, but {} names {}", count_columns(file.names(), delimiter), path,
                            columns),
                kSameColumns);
    for (std::int64_t column = 0; column < columns; ++column)
      if (const std::string here = name(file.names(), column), there = name(names, column); here != there)
        file.fail(1, fmt::format("column {} is named '{}', but '{}' in {}", column + 1, here, there, path),
                  kSameColumns);
  }
  /// At the first row of another file.
  void check_count(const CsvFile& file, std::int64_t columns) const {
    if (columns != count)
      file.fail(file.line_number(),
                fmt::format("has {} columns, but the rows of {} have {}", columns, path, count),
                kSameColumns);
  }
};

/// Reads the rows of all files as of one, with their labels. Calls `arrange(file, columns)` at the
/// first row, which must call file.set_columns() and return the shape of a sample.
template <typename Arrange>
DatasetParts read_rows(const std::vector<std::string>& paths, const std::optional<RowRange>& rows,
                       const CsvFormat& format, const Params& params, Arrange arrange) {
  DatasetParts parts;
  parts.source = name_of_files(paths);
  parts.record_word = "line";
  parts.transform = transform_options(params);
  std::vector<float> features;
  std::vector<double> labels;
  CsvColumns first;
  std::int64_t row = 0;
  for (const std::string& path : paths) {
    if (rows && row >= rows->last) break;
    CsvFile file(path, format);
    const std::int64_t row_of_file = row;
    bool arranged = false;
    for (std::string_view line; (!rows || row < rows->last) && file.next_row(line); ++row) {
      if (row == row_of_file && &path != &paths.front()) first.check_names(file, format.delimiter);
      if (row == 0) first.names = file.names(), first.path = path;
      if (rows && row < rows->first) continue;
      if (!arranged) {
        arranged = true;
        const std::int64_t columns = count_columns(line, format.delimiter);
        if (parts.size == 0) {
          parts.feature_shape = arrange(file, columns);
          first.path = path;
          first.count = columns;
          first.label = file.label_index();
          first.skip_labels = file.skips_labels();
        } else {
          first.check_count(file, columns);
          file.set_columns(columns, first.label, first.skip_labels);
        }
        if (paths.size() > 1) begin_file(parts, path, file.line_number());
        if (parts.size == 0) parts.first_record = file.line_number();
      }
      ++parts.size;
      file.parse(line, features, labels);
    }
    if (row == row_of_file)
      throw Error(ErrorKind::data, "holds no data rows", path,
                  "Check the path; an empty file may be a failed download.");
  }
  checked_rows(rows, row, parts.source);
  parts.features = Buffer(cpu_device(), features.size() * sizeof(float));
  std::copy(features.begin(), features.end(), parts.features.as<float>().begin());
  parts.num_label_columns = labels.empty() ? 0 : 1;
  set_labels_by_value(parts, labels);
  return parts;
}

std::unique_ptr<Dataset> make(const Params& params, const std::string& base_directory) {
  const CsvFormat format = format_options(params);
  const std::optional<RowRange> rows = rows_option(params);
  return std::make_unique<Dataset>(read_rows(data_files(params, "path", base_directory), rows, format, params,
                                             [&](CsvFile& file, std::int64_t columns) {
                                               const std::int64_t label = label_index(file, format, columns);
                                               file.set_columns(columns, label);
                                               return shape_option(params, file,
                                                                   label < 0 ? columns : columns - 1);
                                             }));
}

std::unique_ptr<Dataset> make_input(const Params& params, const InputRequest& request) {
  const CsvFormat format = format_options(params);
  const std::int64_t features = request.feature_shape.num_elements();
  return std::make_unique<Dataset>(
      read_rows(request.paths, std::nullopt, format, params, [&](CsvFile& file, std::int64_t columns) {
        const bool labelled = columns == features + 1 && format.label_column != kNoLabel;
        if (columns != features && !labelled)
          file.fail(
              file.line_number(),
              fmt::format("has {} columns, but the model takes {} features (samples of {})", columns,
                          features, request.feature_shape.to_string()),
              "Give a file with the feature columns of the training data, with or without its label column.");
        file.set_columns(columns, labelled ? label_index(file, format, columns) : -1, !request.labels);
        return request.feature_shape;
      }));
}

}  // namespace

ReaderEntry csv_reader() {
  return {"csv",        "lines of numbers, plain or gzip", kOptions, make, make_input, nullptr, false,
          files_of_path};
}

}  // namespace lockstep
