// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// agree() for a session: the error that all ranks throw is marked as shared, whatever its kind, so that the
// program ends in order on all of them.
#pragma once

#include "comm/agree.h"
#include "comm/shared_error.h"

namespace lockstep {

/// All ranks. Runs `body`, which must not communicate. If it fails on some rank, all ranks throw the same
/// SharedError. If the exchange itself fails, the error is this rank's own.
inline void agree_shared(Communicator& communicator, const char* what, FunctionRef<void()> body) {
  try {
    agree(communicator, body, what);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::communication) throw;
    throw_with_cause(SharedError(error), cause_of(error));
  }
}

}  // namespace lockstep
