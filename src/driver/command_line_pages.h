// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The manual pages, from the table of commands that also makes --help.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep {

/// The manual page lockstep(1), with all commands, in roff.
std::string man_page(const CLI::App& app);
/// lockstep(1) and a page of each command, with the names of their files: "lockstep-train.1".
std::vector<std::pair<std::string, std::string>> man_pages(const CLI::App& app);

}  // namespace lockstep
