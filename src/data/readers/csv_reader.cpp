// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables of text, plain or gzip (RFC 4180). One row is one sample: some of its columns are features, some are
// labels, others are passed over. Numbers become features as they are; texts become one feature of 0 or 1 per
// value, or the index of a class. Accepted: "\r\n", blanks around fields, a leading "+", a byte order mark,
// blank lines at the end. Everything else is an error with line and column.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/device.h"
#include "core/hash.h"
#include "core/memory_limit.h"
#include "core/sizes.h"
#include "data/data_files.h"
#include "data/kept_index.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/csv_columns.h"
#include "data/readers/csv_findings.h"
#include "data/readers/csv_row_parser.h"
#include "data/readers/csv_source.h"
#include "data/readers/csv_store.h"
#include "io/byte_source.h"

namespace lockstep {

namespace {

/// More different texts are no categories, but names or sentences.
constexpr std::size_t kMostValues = 10000;

/// The most values that stay in memory when all rows are read for the first time, which checks them and finds
/// where they are. Of a larger set all are read a second time: by several threads and ranks, into as much
/// memory as they need, or while they are used.
constexpr std::size_t kMostKept = std::size_t{1} << 26;

/// The values of the columns that learn them, sorted by their bytes.
CsvLists learned_lists(const CsvSource& source, const CsvColumns& columns) {
  CsvLists lists;
  if (!columns.learns()) return lists;
  CsvPlan plan;
  std::optional<CsvRowParser> parser;
  std::vector<std::pair<const CsvColumn*, std::set<std::string, std::less<>>>> found;
  std::optional<KeptIndex> kept;
  std::optional<CsvLists> known;
  for_each_row(
      source,
      [&](const CsvFile& file, std::int64_t count, bool is_first) {
        if (is_first) {
          plan = columns.plan(file, count);
          kept.emplace("csv-values", source.options(plan, columns.missing()), source.paths);
          if (const auto bytes = kept->of_all()) known = csv_lists(*bytes);
          if (known) return false;
          for (const CsvColumn& column : plan.columns)
            if (column.learns) found.push_back({&column, {}});
        }
        parser.emplace(file, plan, columns.missing());
        return true;
      },
      [&](const CsvFile& file, const CsvRow& row) {
        std::string reason;
        if (!is_good_row(source, reason, [&] { parser->split(row); })) return;
        for (auto& [column, values] : found) {
          const std::string_view text =
              parser->text_of(*column, parser->fields()[static_cast<std::size_t>(column->info.index)]);
          if (text.empty() || values.contains(text)) continue;
          values.emplace(text);
          if (values.size() > kMostValues)
            file.fail(file.line_number(),
                      fmt::format("{} has more than {} different texts", file.column(column->info.index),
                                  kMostValues),
                      "These are hardly categories: pass the column over with ignore, or list the values.");
        }
      });
  if (known) return *known;
  for (const auto& [column, values] : found)
    lists[csv_list_key(column->info)] = {values.begin(), values.end()};
  if (kept) {
    kept->set_all(csv_lists_bytes(lists));
    kept->keep();
  }
  return lists;
}

/// The plan with the values that were learned.
CsvPlan with_lists(CsvPlan plan, const CsvLists& lists, const CsvFile& file, bool may_be_plain) {
  for (CsvColumn& column : plan.columns) {
    if (!column.learns) continue;
    const auto list = lists.find(csv_list_key(column.info));
    if (list == lists.end() || list->second.empty())
      file.fail(file.line_number(),
                fmt::format("{} has no values in the training set", file.column(column.info.index)),
                "Check the options categories and classes of both sets.");
    column.set_values(list->second);
  }
  plan.arrange(may_be_plain);
  return plan;
}

Shape shape_option(const Params& params, const CsvFile& file, const CsvPlan& plan) {
  const std::optional<std::vector<std::int64_t>> written = params.as<CsvOptions>().shape;
  if (!written) return {plan.num_features};
  const std::vector<std::int64_t>& extents = *written;
  if (extents.empty() || extents.size() >= Shape::kMaxRank ||
      std::any_of(extents.begin(), extents.end(),
                  [](std::int64_t extent) { return extent < 1 || extent > 1 << 30; }))
    throw params.error(option_name<&CsvOptions::shape>(params),
                       fmt::format("must be 1 to {} whole numbers above 0", Shape::kMaxRank - 1),
                       "For 8 x 8 pixels of one channel write [8, 8, 1].");
  const std::optional<std::int64_t> needed = product_up_to(kMaxExtentProduct, extents);
  if (needed != plan.num_features)
    file.fail(file.line_number(),
              fmt::format("has {} feature columns, but the shape {} needs {}", plan.num_features,
                          fmt::join(extents, "x"), needed ? std::to_string(*needed) : "more than 2^59"),
              "Correct the option shape, or those that choose columns.");
  return Shape{std::span(extents)};
}

/// What the rows of a set become, from the first to the last one.
class CsvSet {
 public:
  CsvSet(const CsvSource& source, const Params& params, const CsvMissing& missing)
      : source_(source), missing_(missing), plain_(all_plain(source.paths)) {
    parts_.source = name_of_files(source.paths);
    parts_.record_word = "line";
    parts_.transform = transform_options(params);
    if (const std::optional<double> gb = params.as<StoreOptions>().memory_gb)
      most_kept_ = std::min(most_kept_, static_cast<std::size_t>(*gb * 1e9 / sizeof(float)));
  }

  /// Calls arrange(file, columns, parts) at the first row, which returns the plan and sets the shape of a
  /// sample.
  template <typename Arrange>
  void read(Arrange arrange) {
    std::optional<KeptIndex> kept;
    std::optional<CsvFindings> known;
    for_each_row(
        source_,
        [&](const CsvFile& file, std::int64_t columns, bool is_first) {
          if (is_first) {
            plan_ = arrange(file, columns, parts_);
            if (plain_) kept.emplace("csv", source_.options(plan_, missing_), source_.paths);
            const auto bytes = kept ? kept->of_all() : std::nullopt;
            if (bytes) known = csv_findings(*bytes, source_.paths);
            if (known) return false;
          }
          parser_.emplace(file, plan_, missing_);
          if (source_.paths.size() > 1) begin_file(parts_, file.path(), file.line_number());
          if (is_first) parts_.first_record = file.line_number();
          lines_->begin(file, parts_.size);
          index_.begin(file, parts_.size);
          return true;
        },
        [&](const CsvFile& file, const CsvRow& row) { take(file, row); });
    if (known) return take(std::move(*known));
    if (!kept) return;
    kept->set_all(
        CsvFindings{parts_.size, whole_labels_, parts_.bad, keys_, index_.places(), *lines_}.bytes());
    kept->keep();
  }

  DatasetParts finish() && {
    parts_.feature_dtype = DType::f32;
    parts_.num_label_columns = plan_.num_labels;
    if (keeps_) {
      parts_.features = Buffer(cpu_device(), features_.size() * sizeof(float));
      std::ranges::copy(std::exchange(features_, {}), parts_.features.as<float>().begin());
      set_labels_by_value(parts_, std::exchange(labels_, {}));
    }
    if (plan_.num_labels > 0) parts_.label_kind = whole_labels_ ? LabelKind::indices : LabelKind::rows;
    parts_.class_names = plan_.class_names();
    auto table = std::make_shared<TableInfo>(plan_.table());
    table->keys = std::move(keys_);
    parts_.table = std::move(table);
    parts_.knows_bad = true;
    if (lines_->has_gaps())
      parts_.name = [lines = lines_](std::int64_t sample) {
        const CsvLines::Place place = lines->place_of(sample);
        return fmt::format("{}, line {}", *place.path, place.line);
      };
    parts_.store =
        make_csv_store({plan_, missing_, whole_labels_}, std::move(index_), lines_, parts_.size, plain_);
    return std::move(parts_);
  }

 private:
  static bool all_plain(const std::vector<std::string>& paths) {
    return std::ranges::all_of(
        paths, [](const std::string& path) { return plain_or_gzip_bytes(path)->has_random_access(); });
  }

  /// What another job found by reading all rows. The values are read by the store.
  void take(CsvFindings found) {
    keeps_ = false;
    whole_labels_ = found.whole_labels;
    parts_.bad = std::move(found.bad);
    keys_ = std::move(found.keys);
    *lines_ = std::move(found.lines);
    parts_.first_record = found.places.front().first_line;
    for (CsvRowPlaces& file : found.places) {
      parts_.size = file.first_sample;
      if (source_.paths.size() > 1) begin_file(parts_, file.path, file.first_line);
      const CsvFile rows(file.path, source_.format);
      index_.add(rows, std::move(file));
    }
    parts_.size = found.samples;
  }

  void take(const CsvFile& file, const CsvRow& row) {
    lines_->add(file, parts_.size);
    index_.add(file, parts_.size);
    if (!keeps_) {
      features_.clear();
      labels_.clear();
    }
    std::string reason;
    if (!is_good_row(source_, reason, [&] { parser_->parse(row, features_, labels_); })) {
      std::fill(features_.end() - plan_.num_features, features_.end(), 0.0F);
      std::fill(labels_.end() - plan_.num_labels, labels_.end(), 0.0);
      parts_.bad.push_back(
          {parts_.size, fmt::format("{}, line {}", file.path(), file.line_number()), std::move(reason)});
    }
    whole_labels_ = whole_labels_ && std::all_of(labels_.end() - plan_.num_labels, labels_.end(),
                                                 [](double label) { return is_class_index(label); });
    ++parts_.size;
    if (keeps_ && plain_ && features_.size() > most_kept_) forget_values();
    if ((parts_.size & kRowsBetweenChecks) == 0 || plan_.num_features > kRowsBetweenChecks)
      check_memory(file);
    if (!plan_.key) return;
    is_good_row(source_, reason, [&] { parser_->split(row); });
    keys_.resize(static_cast<std::size_t>(parts_.size));
    if (const auto key = static_cast<std::size_t>(*plan_.key); key < parser_->fields().size())
      keys_.back() = hash64(parser_->fields()[key]);
  }

  void forget_values() {
    keeps_ = false;
    features_ = {};
    labels_ = {};
  }

  void check_memory(const CsvFile& file) {
    if (limit_.allows(memory_bytes())) return;
    if (keeps_ && plain_) forget_values();
    if (!limit_.allows(memory_bytes()))
      limit_.fail(fmt::format("{}, line {}", file.path(), file.line_number()), !plain_);
  }

  /// Of what grows with the rows.
  std::size_t memory_bytes() const {
    constexpr std::size_t kBadRecord = 200;  // with its texts, about
    return features_.size() * sizeof(float) + labels_.size() * sizeof(double) + lines_->memory_bytes() +
           keys_.size() * sizeof(std::uint64_t) + parts_.bad.size() * kBadRecord;
  }

  const CsvSource& source_;
  const CsvMissing& missing_;
  const bool plain_;
  const GrowthLimit limit_;
  static constexpr std::int64_t kRowsBetweenChecks = 1023;  ///< of the limit
  std::size_t most_kept_ = kMostKept;
  bool keeps_ = true;  ///< the values
  DatasetParts parts_;
  std::vector<float> features_;
  std::vector<double> labels_;
  bool whole_labels_ = true;
  CsvPlan plan_;
  std::shared_ptr<CsvLines> lines_ = std::make_shared<CsvLines>();
  CsvIndex index_;
  std::vector<std::uint64_t> keys_;
  std::optional<CsvRowParser> parser_;
};

template <typename Arrange>
DatasetParts read_rows(const CsvSource& source, const Params& params, const CsvMissing& missing,
                       Arrange arrange) {
  CsvSet set(source, params, missing);
  set.read(arrange);
  return std::move(set).finish();
}

CsvSource source_of(const Params& params, const std::string& base_directory) {
  return {files_of_path(params, base_directory), rows_option(params), csv_format(params),
          params.as<BadRecordOptions>().skip};
}

DatasetParts read_set(const Params& params, const CsvSource& source, const CsvColumns& columns,
                      const CsvLists& lists) {
  return read_rows(
      source, params, columns.missing(), [&](const CsvFile& file, std::int64_t count, DatasetParts& parts) {
        CsvPlan plan = with_lists(columns.plan(file, count), lists, file, !columns.missing().has_numbers());
        parts.feature_shape = shape_option(params, file, plan);
        return plan;
      });
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  const CsvSource source = source_of(params, base_directory);
  const CsvColumns columns(params);
  return read_set(params, source, columns, learned_lists(source, columns));
}

DatasetParts make_evaluation(const Params& params, const Params& train, const std::string& base_directory) {
  const CsvSource source = source_of(params, base_directory);
  const CsvColumns columns(params);
  CsvLists lists;
  if (columns.learns()) lists = learned_lists(source_of(train, base_directory), CsvColumns(train));
  return read_set(params, source, columns, lists);
}

DatasetParts make_as_trained(const Params& params, const ReaderDataset& trained,
                             const std::string& base_directory) {
  CsvLists lists;
  if (const TableInfo* const table = trained.table())
    for (const auto* columns : {&table->features, &table->labels})
      for (const TableInfo::Column& column : *columns)
        if (!column.values.empty()) lists.emplace(csv_list_key(column), column.values);
  return read_set(params, source_of(params, base_directory), CsvColumns(params), lists);
}

/// What the model's features are if nobody has kept it: all columns but the label.
TableInfo table_of_numbers(const Params& params, std::int64_t features) {
  for (const char* option : {"columns", "ignore", "labels", "categories", "classes"})
    LOCKSTEP_REQUIRE(!params.has(option) || is_null(params.node(option)), ErrorKind::config,
                     "option {} needs InputRequest::table", option);
  const std::optional<std::int64_t> label_column = params.as<CsvOptions>().label_column;
  TableInfo table{.num_columns = features + (label_column ? 1 : 0)};
  const std::int64_t label = label_column == -1 ? features : label_column.value_or(-1);
  for (std::int64_t column = 0; column < table.num_columns; ++column)
    (column == label ? table.labels : table.features).push_back({column, {}, {}});
  return table;
}

DatasetParts make_input(const Params& params, const InputRequest& request) {
  const CsvColumns columns(params);
  const TableInfo table = request.table != nullptr
                              ? *request.table
                              : table_of_numbers(params, request.feature_shape.num_elements());
  const CsvSource source{request.paths, std::nullopt, csv_format(params), params.as<BadRecordOptions>().skip};
  return read_rows(
      source, params, columns.missing(), [&](const CsvFile& file, std::int64_t count, DatasetParts& parts) {
        CsvPlan plan = columns.plan_of_input(file, count, table, request.labels);
        if (plan.num_features != request.feature_shape.num_elements())
          file.fail(
              file.line_number(),
              fmt::format("gives {} features, but the model takes {} (samples of {})", plan.num_features,
                          request.feature_shape.num_elements(), request.feature_shape.to_string()),
              "Give a file with the columns of the training data.");
        parts.feature_shape = request.feature_shape;
        return plan;
      });
}

}  // namespace

extern const ReaderEntry kCsvReader = {.name = "csv",
                                       .help = "tables of numbers and texts, plain or gzip",
                                       .table = csv_table(),
                                       .make = make,
                                       .make_input = make_input,
                                       .files = files_of_path,
                                       .make_evaluation = make_evaluation,
                                       .make_as_trained = make_as_trained};

}  // namespace lockstep
