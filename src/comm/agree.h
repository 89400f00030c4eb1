// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Agreement on errors, for work that may fail on a single rank (opening a file, reading a sample): each rank
// catches its own error, all ranks agree, and then all ranks throw the same error.
#pragma once

#include "comm/communicator.h"
#include "core/function_ref.h"

namespace lockstep {

/// All ranks. Runs `body`, which must not communicate. If it fails on any rank, every rank throws the error
/// of the lowest failing rank, with its kind and texts; the message names that rank and its host unless all
/// ranks failed. Exceptions other than lockstep::Error become Error(bug), and are nested in what the rank
/// that threw them throws (core/nested_error.h).
void agree(Communicator& communicator, FunctionRef<void()> body, const char* what);

}  // namespace lockstep
