// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "data/reader_options.h"

namespace lockstep {

namespace {

bool is_part_of_numbers(char c) {
  return std::strchr("+-.0123456789\r\n", c) != nullptr || std::isalpha(static_cast<unsigned char>(c)) != 0;
}

/// Null, or what stands in numbers: the decimal mark, or what separates thousands.
std::optional<char> mark(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return std::nullopt;
  const std::string& text = params.string(option.name);
  const bool decimal = option.name == "decimal";
  const std::string_view known = decimal ? ".," : ".,' _";
  if (text.size() != 1 || known.find(text[0]) == std::string_view::npos)
    throw params.error(
        option.name, fmt::format("'{}' is no mark in numbers", text),
        decimal ? "It is \".\" or \",\"." : "It is one of \",\", \".\", \"'\", \" \" and \"_\".");
  return text[0];
}

/// Null, or one character that no number has.
std::optional<char> character(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return std::nullopt;
  const std::string& text = params.string(option.name);
  const char* const usual = option.name == "delimiter" ? "Usual ones are \",\", \";\" and \"\\t\" (in double "
                                                         "quotes); blanks: any number of blanks and tabs."
                            : option.name == "quote"
                                ? "Usual ones are '\"' and \"'\"; null: fields are not quoted."
                                : "A usual one is \"#\".";
  if (option.name == "delimiter" && text == "blanks") return kCsvBlanks;
  if (text.size() != 1 || is_part_of_numbers(text[0]))
    throw params.error(option.name, "must be one character that cannot be part of a number", usual);
  return text[0];
}

constexpr std::array kOptions = with_store_options(std::array{
    path_spec("the file, plain or gzip; a list or a pattern (part*.csv) of files is read as "
              "one; relative to the config file's folder"),
    option<&CsvFormat::header>("header", "false", {}, "the first line contains column names"),
    option_as<character, &CsvFormat::delimiter>(
        ParamType::string, "delimiter", "null", in_words("one character, blanks or null"),
        "separator of columns; blanks: any number of blanks and tabs; null: a tab for files named .tsv or "
        ".tab "
        "(also with .gz), otherwise the one that all of the first rows have"),
    option_as<mark, &CsvFormat::decimal>(
        ParamType::string, "decimal", "null", in_words("\".\", \",\" or null"),
        "decimal mark of numbers; null: a comma, if the first rows have numbers with one, none with a point, "
        "and commas do not separate the fields"),
    option_as<mark, &CsvFormat::thousands>(ParamType::string, "thousands", "null",
                                           in_words("\",\", \".\", \"'\", \" \", \"_\" or null"),
                                           "separates groups of three digits in numbers; null: nothing does"),
    option_as<character, &CsvFormat::quote>(
        ParamType::string, "quote", "\"", in_words("one character or null"),
        "encloses fields that contain delimiters or line ends, and is doubled inside them (RFC 4180); "
        "null: no character does"),
    option_as<character, &CsvFormat::comment>(ParamType::string, "comment", "null",
                                              in_words("one character or null"),
                                              "lines that begin with it are passed over"),
    option<&CsvFormat::skip_lines>("skip_lines", "0", between(0, 1e9),
                                   "lines at the start of each file that are passed over, before the header"),
    option_as<csv_column_names, &CsvOptions::columns>(
        ParamType::node, "columns", "null", {},
        "the features, in this order: numbers from 0, names, or patterns of names (\"x*\"); null: all "
        "columns but the labels"),
    option_as<csv_column_names, &CsvOptions::ignore>(
        ParamType::node, "ignore", "null", {},
        "columns that are passed over, whatever they contain; named as in columns"),
    option<&CsvOptions::label_column>("label_column", "-1", between(-1, 1e9).or_null(),
                                      "0-based; -1: the last; null: no label"),
    option_as<csv_column_names, &CsvOptions::labels>(
        ParamType::node, "labels", "null", {},
        "the label columns, named as in columns, instead of label_column; several are targets"),
    option_as<csv_column_names, &CsvOptions::key_column>(
        ParamType::node, "key_column", "null", {},
        "the column, named as in columns, whose texts are the keys of split_key: column; no feature, "
        "unless columns names it"),
    option<&CsvOptions::classes>(
        "classes", "null", {},
        "labels are texts: the names of the classes in the order of their indices, or auto: those of the "
        "training set, sorted by their bytes; null: labels are numbers"),
    option<&CsvOptions::categories>(
        "categories", "null", {},
        "columns of texts, each with the list of its values, or auto: those of the training set, sorted "
        "by their bytes. A feature of 0 or 1 for each value"),
    option<&CsvOptions::missing>(
        "missing", "error", {},
        "a missing feature is an error, or this number; or a map of columns with the number, or the "
        "text for a column of texts, that takes its place"),
    option<&CsvOptions::missing_values>(
        "missing_values", "null", {},
        "texts that mean a missing value, besides the empty one; null: those that pandas takes for one (NA, "
        "N/A, n/a, NaN, nan, -NaN, -nan, NULL, null, None, <NA>, #N/A, #NA, 1.#IND, 1.#QNAN, ...), none and "
        "?"),
    option<&CsvOptions::shape>("shape", "null", between(1, 1e12).note("channels last"),
                               "shape of a sample; null: one axis, [features]")});

/// Those of pandas (pandas.read_csv, na_values), and two more.
constexpr std::array<std::string_view, 20> kMissing{
    "NA",   "N/A",  "n/a",  "NaN",      "nan", "-NaN",   "-nan",    "NULL",    "null",     "None",
    "none", "<NA>", "#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "?"};

bool is_number(const std::string& text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size() && value - value == 0;
}

}  // namespace

std::span<const ParamSpec> csv_table() { return kOptions; }

CsvFormat csv_format(const Params& params) {
  auto format = params.as<CsvFormat>();
  if (format.quote && (format.quote == format.delimiter || format.quote == ' '))
    throw params.error(option_name<&CsvFormat::quote>(params),
                       "must differ from the delimiter, and is no blank", "A usual one is '\"'.");
  if (format.thousands && format.thousands == format.decimal)
    throw params.error(option_name<&CsvFormat::thousands>(params), "is the decimal mark, too",
                       "Leave one of them out.");
  return format;
}

std::optional<char> delimiter_by_name(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  return path.ends_with(".tsv") || path.ends_with(".tab") ? std::optional('\t') : std::nullopt;
}

CsvMissing::CsvMissing(const Node& node, const Params& params) {
  if (is_null(node)) {
    texts_.assign(kMissing.begin(), kMissing.end());
    return;
  }
  const std::span<const Node> items =
      node.kind == Node::Kind::list ? std::span(node.items) : std::span(&node, 1);
  for (const Node& item : items) {
    if (item.kind != Node::Kind::scalar)
      throw params.error(option_name<&CsvOptions::missing_values>(params),
                         "must be a text or a list of texts",
                         "For example [NA, \"-\", -999]; a text that means null is written in quotes.");
    texts_.push_back(item.text);
    has_numbers_ = has_numbers_ || is_number(item.text);
  }
}

bool CsvMissing::is_missing(std::string_view text) const {
  return text.empty() || std::ranges::find(texts_, text) != texts_.end();
}

std::optional<std::int64_t> csv_column_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

CsvColumnName csv_column_name(const std::string& key, const Node& value) {
  return {key, value.key_quoted ? std::nullopt : csv_column_number(key), value.where};
}

std::vector<CsvColumnName> csv_column_names(const Params& params, const ParamSpec& option) {
  const Node& node = params.node(option.name);
  if (is_null(node)) return {};
  const std::span<const Node> items =
      node.kind == Node::Kind::list ? std::span(node.items) : std::span(&node, 1);
  std::vector<CsvColumnName> names;
  for (const Node& item : items) {
    const std::optional<std::int64_t> number = item.quoted ? std::nullopt : csv_column_number(item.text);
    if (item.kind != Node::Kind::scalar || item.text.empty() || is_null(item))
      throw params.error(option.name, "must be a column or a list of columns",
                         "A column is a number from 0, a name, or a pattern of names: [age, \"x*\", 3].");
    names.push_back({item.text, number, item.where});
  }
  if (names.empty()) throw params.error(option.name, "names no column", "Name at least one, or write null.");
  return names;
}

}  // namespace lockstep
