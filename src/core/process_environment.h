// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Variables of this process's environment, as a function that tests replace.
#pragma once

#include <cstdlib>

#include "core/function_ref.h"

namespace lockstep {

/// Returns the value of a variable, or null if there is none.
using GetEnv = FunctionRef<const char*(const char* name)>;

/// std::getenv as a GetEnv.
inline constexpr auto process_environment = [](const char* name) -> const char* { return std::getenv(name); };

}  // namespace lockstep
