// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An error that all ranks throw together. The program can then shut down normally, because every rank knows
// that no other rank waits in a collective.
#pragma once

#include "core/error.h"
#include "core/nested_error.h"

namespace lockstep {

/// An error that every rank has thrown.
class SharedError : public Error {
 public:
  explicit SharedError(const Error& error) : Error(error) {}
};

/// Runs `body`, whose errors are the same on all ranks (agree(), require_same(), pure arithmetic on equal
/// inputs), and rethrows them as SharedError.
template <typename Body>
decltype(auto) shared(Body&& body) {
  try {
    return body();
  } catch (const SharedError&) {
    throw;
  } catch (const Error& error) {
    // Memory errors, network errors and defects may affect a single rank.
    if (error.kind() == ErrorKind::device || error.kind() == ErrorKind::communication ||
        error.kind() == ErrorKind::bug)
      throw;
    throw_with_cause(SharedError(error), cause_of(error));
  }
}

}  // namespace lockstep
