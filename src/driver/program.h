// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The program: parses the command line, runs the command, and turns an error into a message and an exit code.
#pragma once

namespace lockstep {

/// Exit codes: 0 finished, 1 failed, 2 bad usage or configuration, 3 bad data, 4 bad checkpoint, 75
/// checkpointed, to be queued again. Usage and configuration errors are the same on all ranks of a
/// launch, so only rank 0 (as the launcher's environment says) prints them; all exit alike.
int run_program(int argc, const char* const* argv);

}  // namespace lockstep
