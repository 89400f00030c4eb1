// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a line on standard error can be redrawn, and how wide the terminal is. Under mpirun standard error
// of a rank is a pipe to mpirun, which passes everything on at once: what counts is the launcher's standard
// error.
#pragma once

#include <cstdio>
#include <functional>

#include "core/function_ref.h"

namespace lockstep {

/// Columns of the terminal that shows what is written to `stream`; 80 if it does not say. Empty: there is no
/// terminal, or none on which a line can be redrawn (TERM is unset or "dumb", or mpirun --tag-output puts a
/// name in front of each line).
std::function<int()> terminal_width_of(std::FILE* stream, FunctionRef<const char*(const char*)> get_env);

}  // namespace lockstep
