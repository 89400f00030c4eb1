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

}  // namespace lockstep
