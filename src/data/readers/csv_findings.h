// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: what the first pass over all rows of a set finds in addition to values, as
// bytes that the run keeps (kept_index.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_records.h"
#include "data/dataset_parts.h"
#include "data/readers/csv_columns.h"
#include "data/readers/csv_options.h"
#include "data/readers/csv_store.h"

namespace lockstep {

struct CsvFindings {
  std::int64_t samples = 0;
  bool whole_labels = true;
  std::vector<BadRecord> bad;
  std::vector<std::uint64_t> keys;  ///< of samples (TableInfo::keys)
  std::vector<CsvRowPlaces> places;
  CsvLines lines;

  std::string bytes() const;
};
/// The findings that `bytes` hold; nothing if they are of something else. `paths`: of the set.
std::optional<CsvFindings> csv_findings(std::string_view bytes, const std::vector<std::string>& paths);

std::string csv_lists_bytes(const CsvLists& lists);
std::optional<CsvLists> csv_lists(std::string_view bytes);

/// Everything but the files on which the findings depend.
std::string csv_options_bytes(const CsvPlan& plan, const CsvFormat& format, const CsvMissing& missing,
                              const std::optional<RowRange>& rows, bool skips_bad);

}  // namespace lockstep
