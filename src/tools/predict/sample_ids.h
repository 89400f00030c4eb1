// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the data call their samples: a column of a table that is neither a feature nor a label.
#pragma once

#include <string>
#include <vector>

#include "data/data_options.h"

namespace lockstep {

/// The texts of the column `wanted` of the files of the first input, one for each row; empty `wanted`: of the
/// column `id`, unless the model reads it. Empty if there are none. Throws Error(usage) if `wanted` is no
/// column.
std::vector<std::string> sample_ids(const DataOptions& input, const Dataset& trained,
                                    const std::vector<std::string>& files, const std::string& wanted);
/// The same of the training or the evaluation set of the configuration, by the numbers of its samples. Empty,
/// too, where samples have other numbers than rows: bad ones are left out, or sources are mixed.
std::vector<std::string> ids_of_set(const DataOptions& data, bool evaluation, const Dataset& set,
                                    const std::string& base_directory, const std::string& wanted);

}  // namespace lockstep
