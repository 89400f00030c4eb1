// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/error.h"

namespace lockstep {

/// The message of the error that an action throws.
template <typename Action>
std::string error_text(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace lockstep
