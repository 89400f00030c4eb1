// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From argv to the arguments of one command. Parsing touches neither files nor MPI, so wrong usage is
// answered at once.
#pragma once

#include "driver/commands/arguments.h"

namespace lockstep {

/// Throws Error(usage), with the nearest known command or option if one is misspelt. `--help`, `--version`
/// `help` and `help COMMAND` give HelpArguments with the text to print.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace lockstep
