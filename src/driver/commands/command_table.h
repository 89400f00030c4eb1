// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All commands of the program.
#pragma once

#include "driver/command_line/parser.h"

namespace lockstep {

/// In the order of `lockstep --help`.
CommandTable command_table();

}  // namespace lockstep
