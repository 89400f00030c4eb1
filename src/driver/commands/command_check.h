// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep check`: validates a configuration, prints the layer table, memory and bytes per step; runs
// nothing.
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_check(const CommandLine& line);

}  // namespace lockstep
