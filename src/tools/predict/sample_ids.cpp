// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/sample_ids.h"

#include <algorithm>

#include "core/error.h"
#include "data/csv_texts.h"
#include "data/reader_dataset.h"
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

}  // namespace

std::vector<std::string> sample_ids(const DataOptions& input, const Dataset& trained,
                                    const std::vector<std::string>& files, const std::string& wanted) {
  constexpr const char* kColumn = "id";
  const bool is_table = input.format == "csv";
  if (!wanted.empty() && !is_table)
    throw Error(ErrorKind::usage, "the samples are no table of the reader csv", "--id-column",
                "Leave it out.");
  if (!is_table || (wanted.empty() && reads(trained, kColumn))) return {};
  auto texts = csv_texts(input.train, files, wanted.empty() ? kColumn : wanted);
  if (!texts && !wanted.empty())
    throw Error(ErrorKind::usage, fmt::format("'{}' is no column of {}", wanted, files.front()),
                "--id-column", "Give one of the names in the first line of the file.");
  return texts ? std::move(*texts) : std::vector<std::string>();
}

}  // namespace lockstep
