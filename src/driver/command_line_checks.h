// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to the command line: which values an option takes, and which options go together.
#pragma once

#include <functional>
#include <string>

#include "driver/command_line.h"

namespace CLI {
class App;
}

namespace lockstep {

/// Empty for a good value, else what is wrong with it.
using ValueCheck = std::function<std::string(const std::string& text)>;

/// "'text' is not `what`" unless it is good.
ValueCheck must_be(const char* what, bool (*good)(const std::string& text));
ValueCheck positive_whole_number();
ValueCheck whole_number();
ValueCheck not_negative_number();

/// predict does one of two things, each with its options. Throws Error(usage).
void check_predict(const CLI::App& sub, const CommandLine& line);

}  // namespace lockstep
