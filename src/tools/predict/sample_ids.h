// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the data call their samples: a column of a table, a dataset of an HDF5 file or a field of JSON lines
// that is neither a feature nor a label; of images and texts in files, the names of the files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_options.h"

namespace lockstep {

/// The texts of the column `wanted` of the files of the first input, one for each row; empty `wanted`: of the
/// column `id`, unless the model reads it. Empty if there are none, and for the names of files. Throws
/// Error(usage) if there is no such column, Error(data) if one of the files has none.
std::vector<std::string> sample_ids(const DataOptions& input, const Dataset& trained,
                                    const std::vector<std::string>& files, const std::string& wanted);
/// The same of the training or the evaluation set of the configuration, by the numbers of its samples. Empty,
/// too, where samples have other numbers than rows: bad ones are left out, or sources are mixed.
std::vector<std::string> ids_of_set(const DataOptions& data, bool evaluation, const Dataset& set,
                                    const std::string& base_directory, const std::string& wanted);

/// The id of a sample that comes from `where` (Dataset::where()), for samples that are files or members of
/// archives, if `wanted` is `file` or `stem`; otherwise null.
std::function<std::string(const std::string& where)> id_of_file(const DataOptions& input,
                                                                std::string_view wanted);

/// The texts and numbers of the field `name` of JSON lines; a line that cannot be read has an empty one.
/// Nothing if the first line has no such field. Throws Error(data).
std::optional<std::vector<std::string>> jsonl_ids(const std::vector<std::string>& paths,
                                                  std::string_view name);

}  // namespace lockstep
