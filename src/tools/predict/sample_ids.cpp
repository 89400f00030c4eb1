// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/sample_ids.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "data/csv_texts.h"
#include "data/data_files.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/table_info.h"

namespace lockstep {

namespace {

bool reads(const Dataset& trained, const std::string& column) {
  const auto has = [&](const std::vector<TableInfo::Column>& columns) {
    return std::ranges::find(columns, column, &TableInfo::Column::name) != columns.end();
  };
  return std::ranges::any_of(trained.parts(), [&](const DatasetPart& part) {
    const TableInfo* const table = part.data->table();
    return table != nullptr && (has(table->features) || has(table->labels));
  });
}

/// The texts of the column of all rows of the files.
std::vector<std::string> texts_of_column(const std::string& format, const Params& params,
                                         const Dataset& trained, const std::vector<std::string>& files,
                                         const std::string& wanted) {
  constexpr const char* kColumn = "id";
  const bool is_table = format == "csv";
  if (!wanted.empty() && !is_table)
    throw Error(ErrorKind::usage, "the samples are no table of the reader csv", "--id-column",
                "Leave it out.");
  if (!is_table || (wanted.empty() && reads(trained, kColumn))) return {};
  auto texts = csv_texts(params, files, wanted.empty() ? kColumn : wanted);
  if (!texts && !wanted.empty())
    throw Error(ErrorKind::usage, fmt::format("'{}' is no column of {}", wanted, files.front()),
                "--id-column", "Give one of the names in the first line of the file.");
  return texts ? std::move(*texts) : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> sample_ids(const DataOptions& input, const Dataset& trained,
                                    const std::vector<std::string>& files, const std::string& wanted) {
  return texts_of_column(input.format, input.train, trained, files, wanted);
}

std::vector<std::string> ids_of_set(const DataOptions& data, bool evaluation, const Dataset& set,
                                    const std::string& base_directory, const std::string& wanted) {
  const DataInput& input = *sets_of(data).front();
  const Params& params = evaluation ? *input.eval : input.train;
  const bool mixed = !evaluation && !data.sources.empty();
  if ((mixed || input.format != "csv") && wanted.empty()) return {};
  std::vector<std::string> ids = texts_of_column(mixed ? "" : input.format, params, set,
                                                 data_files(params, "path", base_directory), wanted);
  if (const std::optional<RowRange> rows = rows_option(params); rows && !ids.empty()) {
    const std::int64_t last = std::min(rows->last, std::ssize(ids));
    ids.erase(ids.begin() + last, ids.end());
    ids.erase(ids.begin(), ids.begin() + std::min(rows->first, last));
  }
  if (std::ssize(ids) != set.size()) ids.clear();
  return ids;
}

}  // namespace lockstep
