// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/scalar.h"
#include "driver/command_line_errors.h"

namespace lockstep {

ValueCheck must_be(const char* what, bool (*good)(const std::string& text)) {
  return [=](const std::string& text) {
    return good(text) ? std::string() : fmt::format("'{}' is not {}", text, what);
  };
}
ValueCheck positive_whole_number() {
  return must_be("a whole number of at least 1",
                 [](const std::string& text) { return parse_integer(text).value_or(0) >= 1; });
}

ValueCheck whole_number() {
  return must_be("a whole number, 0 or more",
                 [](const std::string& text) { return parse_integer(text).value_or(-1) >= 0; });
}
ValueCheck not_negative_number() {
  return must_be("a number, 0 or more",
                 [](const std::string& text) { return parse_real(text).value_or(-1) >= 0; });
}

void check_predict(const CLI::App& sub) {
  const char* const help = "See: lockstep predict --help";
  if (sub.count("--prompt") > 0) {
    for (const char* name : {"--input", "--output"})
      if (sub.count(name) > 0)
        throw usage_error(fmt::format("predict: {} does not go with --prompt", name), help);
    return;
  }
  for (const char* name : {"--length", "--temperature", "--top-k", "--seed"})
    if (sub.count(name) > 0) throw usage_error(fmt::format("predict: {} needs --prompt", name), help);
  for (const char* name : {"--input", "--output"})
    if (sub.count(name) == 0)
      throw usage_error(fmt::format("predict: {} is required (or --prompt, to go on with a text)", name),
                        help);
}

}  // namespace lockstep
