// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The frame of every command that may run on many ranks: start communication, run, end; and the one place
// where an error of one rank or of all becomes one message and one exit code.
//
// Errors that all ranks throw alike (SharedError, made by shared()) end the run in order: the chief prints,
// all finalize. Any other error may be one rank's own while the others wait in a collective: that rank prints
// and aborts the run.
#pragma once

#include <optional>

#include "comm/environment.h"
#include "core/error.h"
#include "core/function_ref.h"

namespace lockstep {

/// An error that every rank has thrown.
class SharedError : public Error {
 public:
  explicit SharedError(const Error& error)
      : Error(error.kind(), error.what_happened(), error.where(), error.advice()) {}
};

/// Runs `body`, whose errors are the same on all ranks (agree(), require_same(), pure arithmetic on equal
/// inputs).
template <typename Body>
decltype(auto) shared(Body&& body) {
  try {
    return body();
  } catch (const SharedError&) {
    throw;
  } catch (const Error& error) {
    // Memory, the network and our own defects strike one rank alone.
    if (error.kind() == ErrorKind::device || error.kind() == ErrorKind::communication ||
        error.kind() == ErrorKind::bug)
      throw;
    throw SharedError(error);
  }
}

/// Starts communication, runs `body` and returns its exit code, or that of its error. With one rank, errors
/// are simply rethrown. `timeout_seconds` as in CommOptions. `quiet`: on standard error warnings and errors
/// only.
int run_on_ranks(std::optional<double> timeout_seconds, bool quiet, FunctionRef<int(CommEnvironment&)> body);

}  // namespace lockstep
