// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_texts.h"

#include <algorithm>

#include "core/error.h"
#include "data/readers/csv_file.h"

namespace lockstep {

std::optional<std::vector<std::string>> csv_texts(const Params& params, const std::vector<std::string>& paths,
                                                  std::string_view name) {
  const CsvFormat format = csv_format(params);
  std::vector<std::string> texts;
  for (const std::string& path : paths) {
    CsvFile file(path, format);
    const auto column = std::ranges::find(file.names(), name);
    if (column == file.names().end()) {
      if (&path == &paths.front()) return std::nullopt;
      throw Error(ErrorKind::data, fmt::format("has no column '{}', which the first file has", name), path,
                  "Give files with the same columns.");
    }
    const auto index = static_cast<std::size_t>(column - file.names().begin());
    CsvRow row;
    CsvFields fields;
    while (file.next_row(row)) {
      try {
        file.split(row, fields);
        texts.emplace_back(index < fields.size() ? fields[index] : std::string_view());
      } catch (const Error&) {  // reading the sample says so
        texts.emplace_back();
      }
    }
  }
  return texts;
}

}  // namespace lockstep
