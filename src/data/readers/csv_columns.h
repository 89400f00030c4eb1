// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: what becomes of each column of a file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/readers/csv_file.h"
#include "data/readers/csv_options.h"
#include "data/table_info.h"

namespace lockstep {

/// A column that is used.
struct CsvColumn {
  TableInfo::Column info;
  std::int64_t slot = 0;  ///< of its first value among the features, or among the labels
  bool is_label = false;
  bool has_texts = false;   ///< one of info.values; otherwise a number
  bool learns = false;      ///< info.values are those of the training set
  bool to_predict = false;  ///< of a file for a trained model
  /// Takes the place of a missing value.
  std::optional<float> number_if_missing;
  std::optional<std::string> text_if_missing;
  std::map<std::string, std::int64_t, std::less<>> place;  ///< of each of info.values

  std::int64_t width() const;
  void set_values(std::vector<std::string> values);
};

struct CsvPlan {
  std::int64_t num_columns = 0;  ///< of the file
  std::vector<CsvColumn> columns;
  std::int64_t num_features = 0;  ///< values of a sample
  std::int64_t num_labels = 0;
  std::optional<std::int64_t> key;  ///< the column with the key of a sample

  enum class Use { feature, label, ignored };
  struct Run {
    Use use;
    std::int64_t count;  ///< of consecutive columns
  };
  /// All columns, if what is used is numbers in the order of the file; otherwise empty.
  std::vector<Run> plain;
  bool learns() const;
  /// Called after the columns have changed.
  void arrange(bool may_be_plain);
  TableInfo table() const;
  std::vector<std::string> class_names() const;
};

/// The values of columns that the training set determines, by column.
using CsvLists = std::map<std::string, std::vector<std::string>>;
std::string csv_list_key(const TableInfo::Column& column);

/// The options that choose columns.
class CsvColumns {
 public:
  /// Throws Error(config).
  explicit CsvColumns(const Params& params);

  /// `file` is at its first data row, which has `columns` columns. Throws Error(data) with its line.
  CsvPlan plan(const CsvFile& file, std::int64_t columns) const;
  /// The plan of a file to predict: the columns of `table`, with or without labels. Those with names are
  /// found by their names.
  CsvPlan plan_of_input(const CsvFile& file, std::int64_t columns, const TableInfo& table, bool labels) const;
  /// Some lists are those of the training set.
  bool learns() const { return learns_; }
  const CsvMissing& missing() const { return missing_; }

 private:
  struct Texts {
    CsvColumnName column;
    std::optional<std::vector<std::string>> values;  ///< empty: those of the training set
  };
  struct Fill {
    std::optional<CsvColumnName> column;  ///< empty: all columns of numbers
    std::string text;
    std::optional<float> number;
  };
  std::optional<std::vector<std::string>> values_option(std::string_view option, const Node& node);
  void read_categories();
  void read_missing();
  std::vector<std::int64_t> label_indices(const CsvFile& file, std::int64_t columns) const;
  std::vector<std::int64_t> feature_indices(const CsvFile& file, std::int64_t columns,
                                            const std::vector<std::int64_t>& labels) const;
  std::optional<std::int64_t> key_index(const CsvFile& file, std::int64_t columns) const;
  void add_texts(const CsvFile& file, CsvPlan& plan) const;
  /// What takes the place of missing values of a feature.
  void fill(CsvColumn& column, const TableInfo::Column& as_trained) const;

  const Params& params_;
  const CsvOptions o_;
  CsvMissing missing_;
  bool has_classes_ = false, learns_ = false;
  std::optional<std::vector<std::string>> classes_;
  std::vector<Texts> categories_;
  std::vector<Fill> fills_;
};

}  // namespace lockstep
