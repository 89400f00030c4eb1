// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/predict_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep {

namespace {

std::string names_of(std::span<const DataInput* const> sets) {
  std::string names;
  for (const DataInput* set : sets)
    if (!set->name.empty()) names += (names.empty() ? "" : ", ") + set->name;
  return names;
}

}  // namespace

std::vector<std::vector<std::string>> files_by_input(const DataOptions& options,
                                                     std::span<const std::string> arguments) {
  const std::vector<const DataInput*> sets = sets_of(options);
  std::vector<std::vector<std::string>> files(sets.size());
  std::vector<std::string> unnamed;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const auto of_name = std::ranges::find_if(sets, [&](const DataInput* set) {
      return !set->name.empty() && equals != std::string::npos && set->name == argument.substr(0, equals);
    });
    if (of_name == sets.end())
      unnamed.push_back(argument);
    else
      files[static_cast<std::size_t>(of_name - sets.begin())].push_back(argument.substr(equals + 1));
  }
  const std::size_t inputs = num_inputs(options);
  const auto has_file = [](const std::vector<std::string>& own) { return !own.empty(); };
  const std::span of_inputs(files.data(), inputs), of_targets = std::span(files).subspan(inputs);
  if (std::ranges::none_of(of_inputs, has_file)) {
    std::ranges::fill(of_inputs, unnamed);
  } else if (!unnamed.empty()) {
    throw Error(ErrorKind::usage, fmt::format("'{}' does not say which input it is", unnamed.front()),
                "--input", fmt::format("Write --input NAME=FILE; the inputs are {}.", names_of(sets)));
  }
  const bool targets = std::ranges::any_of(of_targets, has_file);
  for (std::size_t i = 0; i < sets.size(); ++i)
    if (files[i].empty() && (i < inputs || targets))
      throw Error(
          ErrorKind::usage, fmt::format("{} {} has no file", i < inputs ? "input" : "target", sets[i]->name),
          "--input",
          i < inputs
              ? fmt::format("Write --input {}=FILE. If all inputs are in one file, leave out the names.",
                            sets[i]->name)
              : fmt::format("Write --input {}=FILE, or name files of no target: then the samples have no "
                            "labels.",
                            sets[i]->name));
  return files;
}

}  // namespace lockstep
