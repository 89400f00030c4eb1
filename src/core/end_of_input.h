// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The two exceptions that end a thread's work without being an error.
#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

/// There is no more input: what producers throw at its end, and what a closed and empty queue throws at its
/// readers. For a Coordinator a stop without an error.
class EndOfInput : public std::runtime_error {
 public:
  explicit EndOfInput(const std::string& where) : std::runtime_error(where + ": the input has ended") {}
};

/// A wait was broken off because the work is being stopped. Never the cause of a stop, always its
/// consequence.
class Cancelled : public std::runtime_error {
 public:
  explicit Cancelled(const std::string& where) : std::runtime_error(where + " was cancelled") {}
};

}  // namespace lockstep
