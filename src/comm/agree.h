// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where one rank may fail alone (opening a file, reading a sample): catch locally, agree, then all throw
// alike.
#pragma once

#include "comm/communicator.h"
#include "core/function_ref.h"

namespace lockstep {

/// All ranks. Runs `body` (which must not communicate); if it failed on some rank, every rank throws the
/// error of the first failing one, with its kind and texts; the message names rank and host unless all ranks
/// failed. Exceptions that are not lockstep::Error count as Error(bug).
void agree(Communicator& communicator, FunctionRef<void()> body, const char* what);

}  // namespace lockstep
