// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// --hang-rank N: one rank waits at the start until a debugger resumes it.
//
// The debugger sets the variable lockstep_debugger_continue, which exists in every build. The other ranks
// wait in a collective. The time limit of every wait is then at least --hang-seconds, because a rank at a
// breakpoint is late.
#pragma once

#include <optional>

#include "comm/communicator.h"
#include "run/setup/run_arguments.h"

/// A flag that a debugger sets: `set var {int}&lockstep_debugger_continue = 1`.
extern "C" volatile int lockstep_debugger_continue;

namespace lockstep {

/// The time limit of communication calls: `configured`, or more if a rank waits for a debugger.
std::optional<double> hang_timeout_seconds(const HangArguments& hang, std::optional<double> configured);

/// All ranks, before any other collective. Holds the rank that `hang` names, if it names one. Throws the same
/// Error on all ranks: Error(usage) if there is no such rank, or if no debugger came within --hang-seconds.
void hang_rank(const HangArguments& hang, Communicator& world);

}  // namespace lockstep
