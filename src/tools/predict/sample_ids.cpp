// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/sample_ids.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "data/data_files.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/readers/csv_texts.h"
#include "data/readers/hdf5_ids.h"
#include "data/table_info.h"

namespace lockstep {

namespace {

constexpr const char* kColumn = "id";
constexpr std::string_view kOfFiles[] = {"images", "webdataset", "text_files"};

bool is_of_files(const DataOptions& input) {
  return std::ranges::find(kOfFiles, input.format) != std::end(kOfFiles);
}

bool has_columns_or_fields(const DataOptions& input) {
  return input.format == "csv" || input.format == "hdf5" || input.format == "jsonl";
}

/// A column of a table.
bool reads_column(const Dataset& trained) {
  const auto has = [](const std::vector<TableInfo::Column>& columns) {
    return std::ranges::find(columns, kColumn, &TableInfo::Column::name) != columns.end();
  };
  return std::ranges::any_of(trained.parts(), [&](const DatasetPart& part) {
    const TableInfo* const table = part.data->table();
    return table != nullptr && (has(table->features) || has(table->labels));
  });
}

/// A dataset of HDF5 files, or a field.
bool reads_name(const std::string& format, const Params& params, const std::string& name) {
  if (params.has("labels") && params.string("labels") == name) return true;
  if (format == "hdf5") return params.string("features") == name;
  const std::vector<std::string>& features = params.strings("features");
  return std::ranges::find(features, name) != features.end();
}

/// The dataset `id` in the group of the features.
std::string default_dataset(const Params& params) {
  const std::string& features = params.string("features");
  const std::size_t slash = features.rfind('/');
  return slash == std::string::npos ? kColumn : features.substr(0, slash + 1) + kColumn;
}

std::optional<std::vector<std::string>> texts_of(const std::string& format, const Params& params,
                                                 const Dataset& trained,
                                                 const std::vector<std::string>& files,
                                                 const std::string& wanted) {
  if (format == "csv") {
    if (wanted.empty() && reads_column(trained)) return std::nullopt;
    return csv_texts(params, files, wanted.empty() ? kColumn : wanted);
  }
  const bool is_hdf5 = format == "hdf5";
  const std::string name = !wanted.empty() ? wanted : is_hdf5 ? default_dataset(params) : kColumn;
  if (wanted.empty() && reads_name(format, params, name)) return std::nullopt;
  return is_hdf5 ? hdf5_ids(files, name, !wanted.empty()) : jsonl_ids(files, name);
}

/// The ids of all rows of the files. `trained` knows which columns the model reads.
std::vector<std::string> ids_of_files(const DataOptions& data, const Params& params, const Dataset& trained,
                                      const std::vector<std::string>& files, const std::string& wanted) {
  if (is_of_files(data)) {
    if (!wanted.empty() && !id_of_file(data, wanted))
      throw Error(
          ErrorKind::usage, fmt::format("samples of the reader {} have no column '{}'", data.format, wanted),
          "--id-column", "Give file, the name of a sample's file, or stem, the name without its ending.");
    return {};
  }
  if (!has_columns_or_fields(data) && wanted.empty()) return {};
  if (!has_columns_or_fields(data))
    throw Error(ErrorKind::usage, fmt::format("samples of the reader {} have no ids", data.format),
                "--id-column", "Leave it out. --sample-names writes where each sample comes from.");
  auto texts = texts_of(data.format, params, trained, files, wanted);
  if (!texts && !wanted.empty())
    throw Error(ErrorKind::usage,
                fmt::format("'{}' is no {} of {}", wanted,
                            data.format == "hdf5"  ? "dataset"
                            : data.format == "csv" ? "column"
                                                   : "field",
                            files.front()),
                "--id-column",
                data.format == "hdf5"
                    ? "Give the path of a dataset with a text or a whole number for each sample."
                : data.format == "csv" ? "Give one of the names in the first line of the file."
                                       : "Give a field of the first line of the file.");
  return texts ? std::move(*texts) : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> sample_ids(const DataOptions& input, const Dataset& trained,
                                    const std::vector<std::string>& files, const std::string& wanted) {
  return ids_of_files(input, input.train, trained, files, wanted);
}

std::vector<std::string> ids_of_set(const DataOptions& data, bool evaluation, const Dataset& set,
                                    const std::string& base_directory, const std::string& wanted) {
  const DataInput& input = *sets_of(data).front();
  const Params& params = evaluation ? *input.eval : input.train;
  if (!evaluation && !data.sources.empty()) {
    if (wanted.empty()) return {};
    throw Error(ErrorKind::usage, "samples of mixed sources have no ids", "--id-column",
                "Leave it out. --sample-names writes where each sample comes from.");
  }
  const bool has_columns = has_columns_or_fields(data);
  std::vector<std::string> ids = ids_of_files(
      data, params, set,
      has_columns ? data_files(params, "path", base_directory) : std::vector<std::string>(), wanted);
  if (!has_columns) return {};
  if (const std::optional<RowRange> rows = rows_option(params); rows && !ids.empty()) {
    const std::int64_t last = std::min(rows->last, std::ssize(ids));
    ids.erase(ids.begin() + last, ids.end());
    ids.erase(ids.begin(), ids.begin() + std::min(rows->first, last));
  }
  if (std::ssize(ids) == set.size()) return ids;
  if (!wanted.empty())
    throw Error(ErrorKind::usage, fmt::format("has {} values for {} samples", ids.size(), set.size()),
                "--id-column", "Leave it out: --sample-names writes where each sample comes from.");
  return {};
}

std::function<std::string(const std::string& where)> id_of_file(const DataOptions& input,
                                                                std::string_view wanted) {
  if (!is_of_files(input) || (wanted != "file" && wanted != "stem")) return {};
  return [without_ending = wanted == "stem"](const std::string& where) {
    constexpr std::string_view kMember = ", member ";  // of an archive
    std::string name = where;
    if (const auto member = name.find(kMember); member != std::string::npos)
      name.erase(0, member + kMember.size());
    if (const auto slash = name.rfind('/'); slash != std::string::npos) name.erase(0, slash + 1);
    if (const auto dot = name.rfind('.'); without_ending && dot != std::string::npos && dot > 0)
      name.resize(dot);
    return name;
  };
}

}  // namespace lockstep
