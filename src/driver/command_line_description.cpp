// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_description.h"

#include <CLI/CLI.hpp>

namespace lockstep {

namespace {

constexpr auto every_command = [](const CLI::App*) { return true; };
constexpr auto every_option = [](const CLI::Option*) { return true; };

DescribedArgument argument_of(const CLI::Option& option) {
  return {.long_names = option.get_lnames(),
          .short_names = option.get_snames(),
          .positional = option.get_positional() ? option.get_name(true) : std::string(),
          .type = option.get_type_name(),
          .help = option.get_description(),
          .takes_value = option.get_type_size() != 0};
}

}  // namespace

DescribedCommand description_of(const CLI::App& app) {
  DescribedCommand command{.name = app.get_name(), .help = app.get_description(), .example = {}};
  const std::string footer = app.get_footer();
  if (const std::size_t line = footer.find('\n'); line != std::string::npos)
    command.example = footer.substr(line + 1);
  for (const CLI::Option* option : app.get_options(every_option)) {
    command.arguments.push_back(argument_of(*option));
    command.arguments.back().is_help = option == app.get_help_ptr();
  }
  for (const CLI::App* below : app.get_subcommands(every_command))
    command.below.push_back(description_of(*below));
  return command;
}

}  // namespace lockstep
