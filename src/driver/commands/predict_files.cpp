// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/predict_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep {

std::vector<std::vector<std::string>> files_by_input(const DataOptions& options,
                                                     std::span<const std::string> arguments) {
  const std::size_t count = num_inputs(options);
  std::vector<std::vector<std::string>> files(count);
  std::vector<std::string> unnamed;
  std::string names;
  for (std::size_t i = 0; i < count; ++i) names += (i == 0 ? "" : ", ") + input_of(options, i).name;
  for (const std::string& argument : arguments) {
    const std::size_t equals = options.name.empty() ? std::string::npos : argument.find('=');
    std::size_t input = 0;
    while (input < count && equals != std::string::npos &&
           input_of(options, input).name != argument.substr(0, equals))
      ++input;
    if (equals == std::string::npos || input == count)
      unnamed.push_back(argument);
    else
      files[input].push_back(argument.substr(equals + 1));
  }
  const bool any_named = std::ranges::any_of(files, [](const auto& own) { return !own.empty(); });
  if (!any_named) return std::vector(count, unnamed);
  if (!unnamed.empty())
    throw Error(ErrorKind::usage, fmt::format("'{}' does not say which input it is", unnamed.front()),
                "--input", fmt::format("Write --input NAME=FILE; the inputs are {}.", names));
  for (std::size_t i = 0; i < count; ++i)
    if (files[i].empty())
      throw Error(ErrorKind::usage, fmt::format("input {} has no file", input_of(options, i).name), "--input",
                  fmt::format("Write --input {}=FILE. If all inputs are in one file, leave out the names.",
                              input_of(options, i).name));
  return files;
}

}  // namespace lockstep
