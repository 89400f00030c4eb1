// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The names that a summary's option chooses by patterns.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "model/variable_store.h"

namespace lockstep {

/// Whether a pattern of the option matches, for each of `names`; all if the option is null. Throws
/// Error(config) for a pattern that matches none. `option` is also what messages call the things:
/// "variables", "layers".
std::vector<bool> chosen_names(const Params& options, std::string_view option,
                               std::span<const std::string> names);

/// A text for people: "all 8 variables", "2 of 8 variables (conv1/kernel, conv1/bias)", with the first names
/// of many.
std::string chosen_text(std::span<const std::string> chosen, std::size_t of, std::string_view things);

/// The variables that the option `variables` chooses, of all or of those that are trained.
std::vector<VariableId> chosen_variables(const Params& options, const VariableStore& store,
                                         bool trained_only);

}  // namespace lockstep
