// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of commands: one line per command in commands.cpp.
#pragma once

#include <span>

#include "driver/command_line.h"

namespace lockstep {

struct CommandEntry {
  Command command;
  int (*run)(const CommandLine& line);  ///< returns the exit code; throws Error
};

std::span<const CommandEntry> command_table();

}  // namespace lockstep
