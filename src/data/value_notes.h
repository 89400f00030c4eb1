// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a reader does to stored numbers before they are a data set's values, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"

namespace lockstep {

/// "image: value = stored * 0.01 + 273.15; missing values are errors", of the first file; empty if values are
/// the stored numbers. Throws Error(data).
std::vector<std::string> value_notes(std::string_view format, const Params& params,
                                     const std::string& base_directory);

}  // namespace lockstep
