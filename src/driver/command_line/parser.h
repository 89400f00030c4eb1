// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From argv to the call of one command. Parsing touches neither files nor MPI, so wrong usage is answered at
// once.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "driver/command_line/command.h"
#include "reference/command_description.h"

namespace lockstep {

using CommandTable = std::span<const Command* const>;

struct CommandLine {
  std::string text;                   ///< of --help, --version and help: to be printed
  std::unique_ptr<CommandCall> call;  ///< null: there is only the text
};

/// Throws Error(usage), with the nearest known command or option if one is misspelt.
CommandLine parse_command_line(CommandTable commands, int argc, const char* const* argv);

/// The program with all its commands and options, for manual pages and completion.
DescribedCommand description_of(CommandTable commands);

}  // namespace lockstep
