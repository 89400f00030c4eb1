// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The manual pages, from the table of commands that also makes --help.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reference/command_description.h"

namespace lockstep {

/// The manual page lockstep(1), with all commands, in roff.
std::string man_page(const DescribedCommand& program);
/// lockstep(1) and a page of each command, with the names of their files: "lockstep-train.1".
std::vector<std::pair<std::string, std::string>> man_pages(const DescribedCommand& program);

}  // namespace lockstep
