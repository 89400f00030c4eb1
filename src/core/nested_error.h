// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The exception that an error was made from: what a function of the program around has thrown. It is nested
// in the error, on the rank that it was thrown on (std::rethrow_if_nested).
#pragma once

#include <exception>

namespace lockstep {

/// What is nested in the error; null: nothing.
inline std::exception_ptr cause_of(const std::exception& error) {
  const auto* const nested = dynamic_cast<const std::nested_exception*>(&error);
  return nested != nullptr ? nested->nested_ptr() : nullptr;
}

/// Throws `error` with `cause` nested in it; without one, as it is.
template <typename E>
[[noreturn]] void throw_with_cause(const E& error, const std::exception_ptr& cause) {
  if (!cause) throw E(error);
  try {
    std::rethrow_exception(cause);
  } catch (...) {
    std::throw_with_nested(E(error));
  }
}

}  // namespace lockstep
