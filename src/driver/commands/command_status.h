// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep status RUN_DIR`: how far a run is, from any shell that sees its run directory. Writes nothing,
// takes no lock.
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_status(const CommandLine& line);

}  // namespace lockstep
