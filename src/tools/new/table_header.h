// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: does the first line of a table name the columns, or is it a sample?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"

namespace lockstep {

struct HeaderGuess {
  bool header = false;
  /// Empty: it is plain to see. Otherwise why it is taken for what it is, as the end of a sentence.
  std::string doubt = {};
};

/// `lines`: fields of the first lines of a file; at least one. `is_missing`: a text that stands for a missing
/// value.
HeaderGuess guess_header(const std::vector<std::vector<std::string>>& lines,
                         FunctionRef<bool(std::string_view)> is_missing);

}  // namespace lockstep
