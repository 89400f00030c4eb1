// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line/value_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/scalar.h"

namespace lockstep {

ValueCheck must_be(std::string what, std::function<bool(const std::string& text)> good) {
  return [what = std::move(what), good = std::move(good)](const std::string& text) {
    return good(text) ? std::string() : fmt::format("'{}' is not {}", text, what);
  };
}

ValueCheck one_of_names(std::vector<std::string> names) {
  std::string what = fmt::format("one of {}", fmt::join(names, ", "));
  return must_be(std::move(what), [names = std::move(names)](const std::string& text) {
    return std::ranges::find(names, text) != names.end();
  });
}

ValueCheck whole_number(std::int64_t least, std::int64_t most) {
  return must_be(fmt::format("a whole number from {} to {}", least, most), [=](const std::string& text) {
    const auto value = parse_integer(text);
    return value && *value >= least && *value <= most;
  });
}

ValueCheck number(double least, double most) {
  return must_be(fmt::format("a number from {:.0f} to {:.0f}", least, most), [=](const std::string& text) {
    const auto value = parse_real(text);
    return value && *value >= least && *value <= most;
  });
}

ValueCheck number_above(double least, double most) {
  return must_be(fmt::format("a number above {:.0f}, up to {:.0f}", least, most),
                 [=](const std::string& text) {
                   const auto value = parse_real(text);
                   return value && *value > least && *value <= most;
                 });
}

ValueCheck not_empty(const std::string& what) {
  return must_be(what + ": it is empty", [](const std::string& text) { return !text.empty(); });
}

}  // namespace lockstep
