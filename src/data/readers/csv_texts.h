// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The texts of one column of tables that the reader csv reads: what people call their samples.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"

namespace lockstep {

/// The texts of the column `name`, of all rows of the files in their order; a row that cannot be cut into
/// fields has an empty one. Nothing if the first file has no such column. `params`: of the reader. Throws
/// Error(data) if another file has none.
std::optional<std::vector<std::string>> csv_texts(const Params& params, const std::vector<std::string>& paths,
                                                  std::string_view name);

}  // namespace lockstep
