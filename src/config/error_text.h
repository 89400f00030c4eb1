// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How an error of a configuration is printed: with the line of the file and a mark below the place. The texts
// of configurations are kept by name for that, since an error may be found long after the file was read.
#pragma once

#include <string>
#include <string_view>

#include "core/error_group.h"

namespace lockstep {

/// Keeps the text of the file or checkpoint that positions call `name`.
void keep_source(const std::string& name, std::string_view text);

/// The message for the user, from "error: " on, without a last line end. Of an ErrorGroup, all errors and
/// their number. `prefix` follows "error: " ("rank 3: ").
std::string error_text(const Error& error, const std::string& prefix = {});

/// Throws what was collected: mistakes in the source `name` by line and column, then those on the command
/// line, then those without a position.
void throw_in_order(const ErrorCollector& mistakes, const std::string& name);

}  // namespace lockstep
