// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The start and the end of every command that may run on many ranks, and the one place where an error of one
// rank or of all ranks becomes one message and one exit code.
//
// A SharedError (comm/shared_error.h) ends the run in order: the chief prints, all ranks finalize. Any other
// error may be one rank's own while the others wait in a collective: that rank prints it and aborts the run.
#pragma once

#include <optional>

#include "comm/environment.h"
#include "core/function_ref.h"

namespace lockstep {

/// Starts communication, runs `body` and returns its exit code, or that of its error. With one rank, errors
/// are rethrown. `quiet`: print only warnings and errors on standard error.
int run_on_ranks(const CommOptions& options, bool quiet, FunctionRef<int(CommEnvironment&)> body);

}  // namespace lockstep
