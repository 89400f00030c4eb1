// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The two exceptions that end a thread's work without being an error.
#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

/// There is no more input. Producers throw it at the end of their input; a closed and empty queue throws it
/// to its readers. A Coordinator treats it as a stop without an error.
class EndOfInput : public std::runtime_error {
 public:
  explicit EndOfInput(const std::string& where) : std::runtime_error(where + ": the input has ended") {}
};

/// A wait was interrupted because the work is being stopped. It is a consequence of a stop, never its cause.
class Cancelled : public std::runtime_error {
 public:
  explicit Cancelled(const std::string& where) : std::runtime_error(where + " was cancelled") {}
};

}  // namespace lockstep
