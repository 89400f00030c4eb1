// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// --hang-rank N: one rank waits, before it has done anything, until a debugger is attached and lets it go on.
//
// The debugger sets the variable lockstep_debugger_continue, which every build has by that name, or detaches
// after setting it. The other ranks wait in a collective. The run's limit for every wait is then
// --hang-seconds, because a rank at a breakpoint is late for as long as a person thinks.
#pragma once

#include <optional>

#include "comm/communicator.h"
#include "driver/command_line.h"

/// Set by a debugger: `set var {int}&lockstep_debugger_continue = 1`.
extern "C" volatile int lockstep_debugger_continue;

namespace lockstep {

/// The limit for communication calls: `configured`, or more where a debugger is waited for.
std::optional<double> hang_timeout_seconds(const CommandLine& line, std::optional<double> configured);

/// All ranks, first of all. Parks the rank that `line` names, if it names one. Throws the same Error on all
/// ranks: Error(usage) if there is no such rank, or if no debugger came within --hang-seconds.
void hang_rank(const CommandLine& line, Communicator& world);

}  // namespace lockstep
