// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line as data, for manual pages and completion.
#pragma once

#include "reference/command_description.h"

namespace CLI {
class App;
}

namespace lockstep {

/// The program (or a command) with all commands below it, from the table of commands that also makes --help.
DescribedCommand description_of(const CLI::App& app);

}  // namespace lockstep
