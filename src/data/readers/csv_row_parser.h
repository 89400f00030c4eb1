// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: the values of a row.
#pragma once

#include <string_view>
#include <vector>

#include "data/readers/csv_columns.h"

namespace lockstep {

/// A parser of the rows of one file.
class CsvRowParser {
 public:
  /// All must live as long as this.
  CsvRowParser(const CsvRows& file, const CsvPlan& plan, const CsvMissing& missing)
      : file_(file),
        plan_(plan),
        missing_(missing),
        delimiter_(file.delimiter()),
        may_be_plain_(file.decimal() == '.' && !file.thousands()) {}

  /// Appends the values of one row: plan.num_features and plan.num_labels. Throws Error(data) that names line
  /// and column.
  void parse(const CsvRow& row, std::vector<float>& features, std::vector<double>& labels) {
    const std::size_t old_features = features.size(), old_labels = labels.size();
    features.resize(old_features + static_cast<std::size_t>(plan_.num_features));
    labels.resize(old_labels + static_cast<std::size_t>(plan_.num_labels));
    float* const to = features.data() + old_features;
    double* const labels_to = labels.data() + old_labels;
    if (row.has_quotes || !may_be_plain_ || plan_.plain.empty() || !parse_plain(row.text, to, labels_to))
      parse_any(row, to, labels_to);
  }

  /// The text of a column whose values are learned; empty if it is missing and nothing takes its place.
  std::string_view text_of(const CsvColumn& column, std::string_view field) const;
  /// Throws unless there are as many fields as columns.
  void split(const CsvRow& row);
  const CsvFields& fields() const { return fields_; }

 private:
  /// Numbers without quotes; false if there is anything else, or a number is missing.
  bool parse_plain(std::string_view line, float* features, double* labels) const;
  void parse_any(const CsvRow& row, float* features, double* labels);
  template <typename T>
  T number(const CsvColumn& column, std::string_view field) const;
  std::int64_t place_of_text(const CsvColumn& column, std::string_view field) const;
  [[noreturn]] void fail_number(const CsvColumn& column, std::string_view field) const;
  const char* advice_for_marks(std::string_view field) const;
  [[noreturn]] void fail_missing(const CsvColumn& column, std::string_view field) const;

  const CsvRows& file_;
  const CsvPlan& plan_;
  const CsvMissing& missing_;
  const char delimiter_;
  const bool may_be_plain_;  ///< numbers are written as C++ reads them
  CsvFields fields_;
};

}  // namespace lockstep
