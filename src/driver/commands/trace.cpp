// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "driver/commands/commands.h"

namespace lockstep {

int run_command(const TraceArguments&) { throw Error(ErrorKind::usage, "not yet"); }

}  // namespace lockstep
