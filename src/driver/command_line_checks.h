// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to the command line: which values an option takes, and which options go together.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace lockstep {

/// Returns an empty text for a valid value, else what is wrong.
using ValueCheck = std::function<std::string(const std::string& text)>;

/// A check that fails with "'text' is not `what`".
ValueCheck must_be(const char* what, bool (*good)(const std::string& text));
ValueCheck positive_whole_number();
ValueCheck whole_number();
ValueCheck not_negative_number();

/// Options of predict with --input and with --prompt must not be mixed. Throws Error(usage).
void check_predict(const CLI::App& sub);

}  // namespace lockstep
