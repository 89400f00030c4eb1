// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "core/error.h"
#include "core/scalar.h"
#include "driver/command_line_errors.h"

namespace lockstep {

ValueCheck must_be(std::string what, std::function<bool(const std::string& text)> good) {
  return [what = std::move(what), good = std::move(good)](const std::string& text) {
    return good(text) ? std::string() : fmt::format("'{}' is not {}", text, what);
  };
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

// What follows a pattern for --input that the shell has replaced.
void check_member(const std::string& path) {
  const std::filesystem::path member(path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(member, ignored)) return;
  for (const char* const ending : {".h5", ".hdf5", ".yaml", ".yml"})
    if (member.extension() == ending) return;
  throw usage_error(
      fmt::format("predict: one argument too many: '{}'", path),
      "Repeat --input for each file, or put the pattern in quotes. See: lockstep predict --help");
}

void check_predict(const CLI::App& sub) {
  const char* const help = "See: lockstep predict --help";
  if (sub.count("--prompt") > 0) {
    for (const char* name : {"--input", "--output", "--ignore-labels", "--sample-names", "--layer",
                             "--input-format", "--input-option"})
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
