// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to the command line: which values an option takes, and which options go together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace lockstep {

/// Returns an empty text for a valid value, else what is wrong.
using ValueCheck = std::function<std::string(const std::string& text)>;

/// A check that fails with "'text' is not `what`".
ValueCheck must_be(std::string what, std::function<bool(const std::string& text)> good);
ValueCheck whole_number(std::int64_t least, std::int64_t most);
ValueCheck number(double least, double most);
/// Above `least`, and at most `most`.
ValueCheck number_above(double least, double most);
/// `what`: "a path".
ValueCheck not_empty(const std::string& what);

/// Options of predict with --input and with --prompt must not be mixed. Throws Error(usage).
void check_predict(const CLI::App& sub);
/// A further run of an ensemble is a run directory, a checkpoint or a configuration. Throws Error(usage) for
/// another file: the shell has replaced a pattern of inputs.
void check_member(const std::string& path);

}  // namespace lockstep
