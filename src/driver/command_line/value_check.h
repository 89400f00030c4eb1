// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which values an option of a command takes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

/// The largest step that an option names, as in the configuration.
constexpr std::int64_t kMostSteps = 1'000'000'000'000;

/// Returns an empty text for a valid value, else what is wrong.
using ValueCheck = std::function<std::string(const std::string& text)>;

/// A check that fails with "'text' is not `what`".
ValueCheck must_be(std::string what, std::function<bool(const std::string& text)> good);
/// One of `names`: "one of step, epoch, hours".
ValueCheck one_of_names(std::vector<std::string> names);
ValueCheck whole_number(std::int64_t least, std::int64_t most);
ValueCheck number(double least, double most);
/// Above `least`, and at most `most`.
ValueCheck number_above(double least, double most);
/// `what`: "a path".
ValueCheck not_empty(const std::string& what);

}  // namespace lockstep
