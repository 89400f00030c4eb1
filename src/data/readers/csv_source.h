// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: all rows of the files of a set, from the first to the last one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "data/dataset_parts.h"
#include "data/reader_options.h"
#include "data/readers/csv_file.h"
#include "data/readers/csv_findings.h"

namespace lockstep {

/// The files of a set, what is read of them, and how.
struct CsvSource {
  std::vector<std::string> paths;
  std::optional<RowRange> rows;
  CsvFormat format;
  bool skips_bad = false;  ///< rows that are no samples (data.bad_records)

  std::string options(const CsvPlan& plan, const CsvMissing& missing) const {
    return csv_options_bytes(plan, format, missing, rows, skips_bad);
  }
};

/// Calls work(); false if it throws about a row that may be bad. `reason`: why.
template <typename Work>
bool is_good_row(const CsvSource& source, std::string& reason, Work work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (!source.skips_bad || error.kind() != ErrorKind::data) throw;
    reason = error.what_happened();
    return false;
  }
}

inline constexpr const char* kSameCsvColumns =
    "All files of a data set need the same columns in the same order.";

/// What the first of several files sets for the others.
struct CsvFirstFile {
  std::string path;
  std::vector<std::string> names;
  std::int64_t columns = 0;

  /// Throws unless the header of another file has the same names.
  void check_names(const CsvFile& file) const {
    if (file.names() == names) return;
    if (file.names().size() != names.size())
      file.fail(1, fmt::format("names {} columns, but {} names {}", file.names().size(), path, names.size()),
                kSameCsvColumns);
    const auto at = std::ranges::mismatch(file.names(), names);
    file.fail(1,
              fmt::format("column {} is named '{}', but '{}' in {}", at.in1 - file.names().begin() + 1,
                          *at.in1, *at.in2, path),
              kSameCsvColumns);
  }
  /// Checks the count at the first row of another file.
  void check_count(const CsvFile& file, std::int64_t count) const {
    if (count != columns)
      file.fail(file.line_number(),
                fmt::format("has {} columns, but the rows of {} have {}", count, path, columns),
                kSameCsvColumns);
  }
};

/// Calls begin(file, columns, is_first) at the first row of each file that is used, and take(file, row) for
/// each row that is. begin() returns false if that is enough.
template <typename Begin, typename Take>
void for_each_row(const CsvSource& source, Begin begin, Take take) {
  CsvFirstFile first;
  std::int64_t row = 0;
  for (const std::string& path : source.paths) {
    if (source.rows && row >= source.rows->last) break;
    CsvFile file(path, source.format);
    const std::int64_t row_of_file = row;
    bool begun = false;
    for (CsvRow fields; (!source.rows || row < source.rows->last) && file.next_row(fields); ++row) {
      if (row == row_of_file && &path != &source.paths.front()) first.check_names(file);
      if (row == 0) first = {path, file.names(), 0};
      if (source.rows && row < source.rows->first) continue;
      if (!begun) {
        begun = true;
        const std::int64_t columns = file.count_columns(fields);
        const bool is_first = first.columns == 0;
        if (is_first)
          first.path = path, first.columns = columns;
        else
          first.check_count(file, columns);
        if (!begin(file, columns, is_first)) return;
      }
      take(file, fields);
    }
    if (row == row_of_file)
      throw Error(ErrorKind::data, "holds no data rows", path,
                  "Check the path; an empty file may be a failed download.");
  }
  checked_rows(source.rows, row, name_of_files(source.paths));
}

}  // namespace lockstep
