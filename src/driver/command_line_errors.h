// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to the command line: errors with the probable intention where CLI11 reports a mistake.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace CLI {
class App;
}

namespace lockstep {

Error usage_error(std::string what, std::string advice);
/// "Did you mean 'train'? " before `otherwise`, if a known word is near.
std::string with_suggestion(std::string_view word, const std::vector<std::string>& known,
                            const std::string& otherwise);
std::vector<std::string> command_names(const CLI::App& app);
/// "train", or "checkpoint list".
std::string full_name(const CLI::App& sub);
/// " checkpoint" for "checkpoint list".
std::string name_above(const CLI::App& sub);
/// The command that was chosen: the innermost; null if there is none.
CLI::App* chosen_command(const CLI::App& app);
/// The error for an argument that CLI11 did not expect, with the probable intention.
Error leftover_error(const CLI::App& sub);
/// The error for a group of commands without one of them.
Error missing_below(const CLI::App& group, const std::vector<std::string>& below);

}  // namespace lockstep
