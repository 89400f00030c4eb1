// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Labelled texts, one per line, with tab-separated columns: the set that the line belongs to, its labels, its
// text. A sample is max_length token ids. Id 0 is padding, at the end; id 1 is an unknown token. A text
// without tokens is one unknown token.
#include <algorithm>
#include <charconv>
#include <set>

#include "data/data_files.h"
#include "data/multi_label_binarizer.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/text_options.h"
#include "data/token_rows.h"
#include "data/utf8.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

enum class Labels { one_class, multi_label, none };
struct Options {
  std::string path;
  bool header = false;
  Node split_column, label_column, text_column;
  std::optional<std::string> split, vocabulary_split;
  std::optional<RowRange> vocabulary_rows;
  Labels labels{};
  std::string label_separator;
  RowOptions rows;
};
constexpr std::array kOptions = with_text_options(std::array{
    option<&Options::path>("path", kRequired, {},
                           "the file, plain or gzip, UTF-8; relative to the config file's folder",
                           Change::place),
    option<&Options::header>("header", "false", {}, "the first line names the columns"),
    option<&Options::split_column>("split_column", "null", {},
                                   "column with the set of a line: a number from 0, or a name; null: none"),
    option<&Options::label_column>("label_column", "null", {},
                                   "column with the labels: a number from 0, or a name"),
    option<&Options::text_column>("text_column", kRequired, {},
                                  "column with the text: a number from 0, or a name"),
    option<&Options::split>("split", "null", {}, "use lines with this value in split_column; null: all"),
    option<&Options::vocabulary_split>(
        "vocabulary_split", "null", {},
        "create vocabulary and classes from lines with this value in split_column; null: all lines"),
    option_as<row_range, &Options::vocabulary_rows>(
        ParamType::integers, "vocabulary_rows", "null", between(0, 1e15).note("first, last"),
        "create vocabulary and classes from this range of these lines; null: all"),
    option<&Options::labels>(
        "labels", "class", one_of("class|multi_label|none"),
        "class: one name, whose index is the label; multi_label: any number of names, a column of 0 or "
        "1 for each class. Classes are sorted by name"),
    option<&Options::label_separator>("label_separator", ",", in_words("one character"),
                                      "separator of names for multi_label"),
    max_length_option<&Options::rows>(), truncate_option<&Options::rows>(),
    padding_token_option<&Options::rows>()});

constexpr std::int64_t kNone = -1;

[[noreturn]] void fail(const std::string& path, std::int64_t line, std::string what, std::string advice) {
  throw Error(ErrorKind::data, std::move(what), fmt::format("{}, line {}", path, line), std::move(advice));
}

std::vector<std::string_view> columns_of(std::string_view line, char separator) {
  std::vector<std::string_view> columns;
  for (;;) {
    const std::size_t end = line.find(separator);
    columns.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return columns;
    line.remove_prefix(end + 1);
  }
}

/// The columns of one line; empty for missing columns.
struct Line {
  std::int64_t number;
  std::string_view split, labels, text;
  bool text_alone = false;  ///< a line without tabs
};

struct TsvFormat : Options {
  explicit TsvFormat(const Params& given) : Options(given.as<Options>()), params(given) {
    for (const char* name : {"split", "vocabulary_split"})
      if (params.has(name) && is_null(split_column))
        throw params.error(name, "needs split_column", "Say which column holds it, such as split_column: 0.");
    if (with_labels() && is_null(label_column))
      throw params.error("labels", "needs label_column", "Name the column, or write labels: none.");
    if (label_separator.size() != 1 || label_separator == "\t")
      throw params.error("label_separator", "must be one character, not the tab");
  }
  bool with_labels() const { return labels != Labels::none; }
  bool multi_label() const { return labels == Labels::multi_label; }

  const Params& params;
};

/// The number of a column: the option's value, or the position of a name in the header.
std::int64_t column_number(const TsvFormat& format, const Node& node, std::string_view option,
                           const std::vector<std::string_view>& header, const std::string& path) {
  if (is_null(node)) return kNone;
  if (node.kind != Node::Kind::scalar)
    throw format.params.error(option, "must be a column's number, from 0, or its name");
  const std::string& text = node.text;
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = failed == std::errc() && end == text.data() + text.size() && number >= 0;
  if (is_number && !(node.quoted && format.header)) return number;
  if (!format.header)
    throw format.params.error(option, fmt::format("'{}' is not a column number", text),
                              "Columns count from 0; names need header: true.");
  const auto found = std::find(header.begin(), header.end(), text);
  if (found == header.end())
    fail(
        path, 1, fmt::format("has no column named '{}'", text),
        fmt::format("{}Correct the option {}.",
                    is_number ? "In quotes it is a name; without them, the number of a column, from 0. " : "",
                    option));
  return found - header.begin();
}

/// Calls take(Line) for each data line. With `text_alone`, a line without tabs consists of its text only.
template <typename Take>
void for_each_line(const TsvFormat& format, const std::string& path, bool text_alone, Take take) {
  InputFile file(path);
  LineReader lines(file);
  std::string header_line;
  std::vector<std::string_view> header;
  std::string_view line;
  if (format.header && lines.next(line)) {
    require_utf8(line, path, 1);
    header_line.assign(line);
    header = columns_of(header_line, '\t');
  }
  const bool named = format.header;
  const auto number_of = [&](const Node& column, std::string_view option) {
    return column_number(format, column, option, header, path);
  };
  const std::int64_t split = number_of(format.split_column, "split_column"),
                     labels = number_of(format.label_column, "label_column"),
                     text = number_of(format.text_column, "text_column");
  const std::int64_t needed = std::max({split, labels, text}) + 1;
  while (lines.next(line)) {
    const std::int64_t number = lines.line_number();
    require_utf8(line, path, number);
    const std::vector<std::string_view> columns = columns_of(line, '\t');
    const auto count = static_cast<std::int64_t>(columns.size());
    const auto column = [&](std::int64_t index) {
      return index == kNone ? std::string_view() : columns[static_cast<std::size_t>(index)];
    };
    if (text_alone && count == 1) {
      take(Line{number, {}, {}, line, true});
    } else if (count < needed || (named && columns.size() != header.size())) {
      fail(path, number,
           fmt::format("has {} columns, but {} are needed", count,
                       named ? static_cast<std::int64_t>(header.size()) : needed),
           "Columns are separated by one tab each; a truncated file ends in the middle of a line.");
    } else {
      take(Line{number, column(split), column(labels), column(text)});
    }
  }
}

/// The label names of a line; none if the column is empty.
std::vector<std::string_view> names_of(const TsvFormat& format, const Line& line) {
  if (format.multi_label()) return split_labels(line.labels, format.label_separator[0]);
  return line.labels.empty() ? std::vector<std::string_view>{} : std::vector{line.labels};
}

struct VocabularyAndClasses {
  std::shared_ptr<const TextInfo> text;
  std::vector<std::string> class_names;
};

VocabularyAndClasses read_vocabulary_and_classes(const TsvFormat& format, const std::string& path,
                                                 const std::string& base_directory) {
  const auto tokenizer = format.params.as<Tokenizer>();
  const std::optional<RowRange>& rows = format.vocabulary_rows;
  const std::optional<std::string>& split = format.vocabulary_split;
  WordCounts counts;
  std::set<std::string, std::less<>> classes;
  std::int64_t row = 0;
  for_each_line(format, path, false, [&](const Line& line) {
    if (split && line.split != *split) return;
    const std::int64_t at = row++;
    if (rows && (at < rows->first || at >= rows->last)) return;
    if (tokenizer.unit != TokenUnit::bpe) count_tokens(tokenizer, line.text, counts);
    if (!format.with_labels()) return;
    for (std::string_view name : names_of(format, line)) classes.emplace(name);
  });
  if (row == 0)
    throw Error(
        ErrorKind::data,
        split ? fmt::format("has no line whose split is '{}'", *split) : std::string("holds no lines"), path,
        "Check the path and the option vocabulary_split.");
  TextInfo info = text_option(format.params, base_directory, path, true,
                              [&](WordCounts& all) { all = std::move(counts); });
  if (format.with_labels() && classes.empty())
    throw Error(ErrorKind::data, "no line that the classes come from has a label", path,
                "Check label_column.");
  return {std::make_shared<TextInfo>(std::move(info)), {classes.begin(), classes.end()}};
}

/// Collects the samples.
class Samples {
 public:
  Samples(const TsvFormat& format, std::string path, VocabularyAndClasses from)
      : format_(format), tokens_(format.rows) {
    parts_.source = std::move(path);
    parts_.record_word = "line";
    parts_.feature_shape = {tokens_.length()};
    parts_.sequence = row_form(*from.text);
    parts_.text = std::move(from.text);
    parts_.class_names = std::move(from.class_names);
    if (format.with_labels()) classes_.emplace(parts_.class_names);
  }

  void add(const Line& line, bool labelled) {
    tokens_.add(line.text, *parts_.text);
    if (labelled) add_labels(line);
    parts_.records.push_back(line.number);
    ++parts_.size;
  }

  DatasetParts dataset(bool labelled) {
    if (labelled) parts_.num_label_columns = format_.multi_label() ? classes_->num_classes() : 1;
    set_ids(parts_, tokens_.ids(), parts_.text->vocabulary.size());
    return std::move(parts_);
  }

 private:
  void add_labels(const Line& line) {
    const std::vector<std::string_view> names = names_of(format_, line);
    if (!format_.multi_label() && names.empty())
      fail(parts_.source, line.number, "has no label", "Every line needs one, or write labels: multi_label.");
    row_.resize(static_cast<std::size_t>(classes_->num_classes()));
    classes_->transform(names, parts_.source, line.number, row_.data());
    if (format_.multi_label()) {
      parts_.label_rows.insert(parts_.label_rows.end(), row_.begin(), row_.end());
    } else {
      parts_.label_indices.push_back(
          static_cast<std::int32_t>(std::find(row_.begin(), row_.end(), 1.0F) - row_.begin()));
    }
  }

  const TsvFormat& format_;
  TokenRows tokens_;
  std::optional<MultiLabelBinarizer> classes_;
  std::vector<float> row_;  ///< classes of a line as 0 and 1
  DatasetParts parts_;
};

/// The chosen lines of the file in `params`.
DatasetParts read_set(const TsvFormat& format, const std::string& path, VocabularyAndClasses from) {
  const std::optional<RowRange> rows = rows_option(format.params);
  Samples samples(format, path, std::move(from));
  std::int64_t row = 0;
  for_each_line(format, path, false, [&](const Line& line) {
    if (format.split && line.split != *format.split) return;
    const std::int64_t at = row++;
    if (!rows || (at >= rows->first && at < rows->last)) samples.add(line, format.with_labels());
  });
  if (row == 0)
    throw Error(ErrorKind::data,
                format.split ? fmt::format("has no line whose split is '{}'", *format.split)
                             : std::string("holds no lines"),
                path, "Check the path and the option split.");
  checked_rows(rows, row, path);
  return samples.dataset(format.with_labels());
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  const TsvFormat format(params);
  const std::string path = resolved_path(format.path, base_directory);
  return read_set(format, path, read_vocabulary_and_classes(format, path, base_directory));
}

DatasetParts make_as_trained(const Params& params, const ReaderDataset& trained,
                             const std::string& base_directory) {
  const TsvFormat format(params);
  return read_set(format, resolved_path(format.path, base_directory),
                  {trained.shared_text(), trained.class_names()});
}

/// The first line says whether there are labels; then every line needs one.
DatasetParts make_input(const Params& params, const InputRequest& request) {
  LOCKSTEP_CHECK(request.text != nullptr);
  const TsvFormat format(params);
  const std::string& path = only_file(request, "text_tsv");
  check_feature_shape(Shape{format.rows.max_length}, request.feature_shape, path);
  Samples samples(format, path, {std::make_shared<TextInfo>(*request.text), request.class_names});
  std::optional<bool> labelled;
  for_each_line(format, path, true, [&](const Line& line) {
    if (!labelled)
      labelled = request.labels && format.with_labels() && !line.text_alone &&
                 (format.multi_label() || !line.labels.empty());
    if (*labelled && line.text_alone)
      fail(path, line.number, "has no column of labels, but the lines before it have",
           "Give labels in all lines or in none.");
    samples.add(line, *labelled);
  });
  return samples.dataset(labelled.value_or(false));
}

}  // namespace

extern const ReaderEntry kTextTsvReader = {
    "text_tsv",     "labelled texts, one per line, in columns separated by tabs",
    kOptions,       make,
    make_input,     nullptr,
    false,          file_of_path,
    nullptr,        nullptr,
    make_as_trained};

}  // namespace lockstep
