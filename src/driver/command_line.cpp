// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "comm/environment.h"
#include "core/error.h"
#include "core/process_environment.h"
#include "driver/command_line_errors.h"
#include "driver/command_line_options.h"

namespace lockstep {

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLineParser parser;
  CLI::App& app = parser.app();
  const std::vector<std::string> names = command_names(app);
  const std::string commands = fmt::format("Commands: {}. See: lockstep --help", fmt::join(names, ", "));
  if (argc < 2) throw usage_error("a command is missing", commands);
  const std::string first = argv[1];
  HelpArguments help;
  if (first == "help" && argc > 2) {  // help train
    std::vector<const char*> command{argv[0]};
    command.insert(command.end(), argv + 2, argv + argc);
    command.push_back("--help");
    return parse_command_line(static_cast<int>(command.size()), command.data());
  }
  if (first == "help") {
    help.text = app.help();
    return help;
  }
  if (!first.starts_with('-') && std::find(names.begin(), names.end(), first) == names.end())
    throw usage_error(fmt::format("unknown command '{}'", first), with_suggestion(first, names, commands));

  if (first.starts_with('-') && first != "-h" && first != "--help" && first != "--version")
    throw usage_error(fmt::format("'{}': a command comes first", first),
                      with_suggestion(first, {"--help", "--version"}, commands));

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* chosen = chosen_command(app);
    help.text = chosen == nullptr ? app.help() : chosen->help("lockstep" + name_above(*chosen));
    return help;
  } catch (const CLI::CallForVersion& version) {
    help.text = std::string(version.what()) + "\n";
    return help;
  } catch (const CLI::ExtrasError&) {
    const CLI::App* chosen = chosen_command(app);
    if (chosen == nullptr) throw usage_error(fmt::format("'{}' is followed by too much", first), commands);
    throw leftover_error(*chosen);
  } catch (const CLI::ParseError& error) {
    const CLI::App* chosen = chosen_command(app);
    if (chosen == nullptr) throw usage_error(error.what(), commands);
    const std::string name = full_name(*chosen);
    // A misspelt option leaves what it stood for missing too: name the cause.
    if (!chosen->remaining().empty() && chosen->remaining().front().starts_with("--"))
      throw leftover_error(*chosen);
    if (const std::vector<std::string> below = command_names(*chosen); !below.empty())
      throw missing_below(*chosen, below);
    throw usage_error(fmt::format("{}: {}", name, error.what()),
                      fmt::format("See: lockstep {} --help", name));
  }

  const CLI::App* chosen = chosen_command(app);
  return parser.arguments_of(*chosen);
}

}  // namespace lockstep
