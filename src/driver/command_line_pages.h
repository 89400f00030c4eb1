// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What is made from the table of commands beside --help: the manual page and the completion of a shell.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep {

/// The manual page lockstep(1), in roff.
std::string man_page(const CLI::App& app);
/// A script for bash. It completes commands, options, values that are one of a few, files, and the
/// configuration keys after --set.
std::string bash_completion(const CLI::App& app, const std::vector<std::string>& configuration_keys);

}  // namespace lockstep
