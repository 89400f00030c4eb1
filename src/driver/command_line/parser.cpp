// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <list>

#include "core/name_list.h"
#include "core/version.h"
#include "reference/documentation.h"

namespace lockstep {

namespace {

constexpr auto every_command = [](const CLI::App*) { return true; };
constexpr auto every_option = [](const CLI::Option*) { return true; };

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(every_command)) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// "train", or "checkpoint list".
std::string full_name(const CLI::App& sub) {
  const CLI::App* parent = sub.get_parent();
  return parent == nullptr || parent->get_parent() == nullptr ? sub.get_name()
                                                              : full_name(*parent) + " " + sub.get_name();
}

/// " checkpoint" for "checkpoint list".
std::string name_above(const CLI::App& sub) {
  const CLI::App* parent = sub.get_parent();
  return parent->get_parent() == nullptr ? "" : " " + full_name(*parent);
}

/// The command that was chosen: the innermost; null if there is none.
const CLI::App* chosen_command(const CLI::App& app) {
  const CLI::App* chosen = nullptr;
  for (std::vector<CLI::App*> next = app.get_subcommands(); !next.empty(); next = chosen->get_subcommands())
    chosen = next.front();
  return chosen;
}

/// The error for an argument that CLI11 did not expect, with the probable intention.
Error leftover_error(const CLI::App& sub) {
  const std::vector<std::string> rest = sub.remaining();
  std::string word = rest.empty() ? "" : rest.front();
  for (const std::string& candidate : rest)
    if (candidate.starts_with('-')) {
      word = candidate.substr(0, candidate.find('='));
      break;
    }
  const std::string help = fmt::format("See: lockstep {} --help", full_name(sub));
  if (!word.starts_with('-'))
    return usage_error(fmt::format("{}: one argument too many: '{}'", full_name(sub), word), help);
  return usage_error(fmt::format("{}: unknown option '{}'", full_name(sub), word),
                     with_suggestion(word, option_names(sub), help));
}

/// The error for a group of commands without one of them.
Error missing_below(const CLI::App& group, const std::vector<std::string>& below) {
  const std::string name = full_name(group);
  const std::string all = fmt::format("Commands: {}. See: lockstep {} --help", name_list(below), name);
  const std::vector<std::string> rest = group.remaining();
  if (rest.empty()) return usage_error(fmt::format("{}: a command is missing", name), all);
  return usage_error(fmt::format("{}: unknown command '{}'", name, rest.front()),
                     with_suggestion(rest.front(), below, all));
}

DescribedArgument description_of(const CLI::Option& option) {
  return {.long_names = option.get_lnames(),
          .short_names = option.get_snames(),
          .positional = option.get_positional() ? option.get_name(true) : std::string(),
          .type = option.get_type_name(),
          .help = option.get_description(),
          .takes_value = option.get_type_size() != 0};
}

DescribedCommand description_of(const CLI::App& app) {
  DescribedCommand command{.name = app.get_name(), .help = app.get_description(), .example = {}};
  const std::string footer = app.get_footer();
  if (const std::size_t line = footer.find('\n'); line != std::string::npos)
    command.example = footer.substr(line + 1);
  for (const CLI::Option* option : app.get_options(every_option)) {
    command.arguments.push_back(description_of(*option));
    command.arguments.back().is_help = option == app.get_help_ptr();
  }
  for (const CLI::App* below : app.get_subcommands(every_command))
    command.below.push_back(description_of(*below));
  return command;
}

/// The commands as CLI11 knows them, and the calls that it writes into. Neither copied nor moved: CLI11 keeps
/// addresses.
class Parser {
 public:
  explicit Parser(CommandTable commands);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  CLI::App& app() { return app_; }
  /// After parsing: the call of a command. Throws Error(usage) for options that do not go together.
  std::unique_ptr<CommandCall> call_of(const CLI::App& command);

 private:
  struct Declared {
    Declared(CLI::App& command, std::unique_ptr<CommandCall> its_call)
        : app(&command), call(std::move(its_call)), options(command) {}

    const CLI::App* app;
    std::unique_ptr<CommandCall> call;
    CommandOptions options;
  };
  void add(const Command& command);
  void add_group(const Command& group, CommandTable commands);

  CLI::App app_;
  std::list<Declared> commands_;
};

Parser::Parser(CommandTable commands)
    : app_("Trains neural networks data-parallel over MPI: the same bits on any number of ranks.",
           "lockstep") {
  app_.set_version_flag("--version", fmt::format("lockstep {}", kVersion), "Print the version");
  app_.require_subcommand(1);
  const std::string documentation = documentation_path();
  app_.footer(fmt::format("Help of a command: lockstep COMMAND --help.{}",
                          documentation.empty() ? "" : " Documentation: " + documentation));
  for (const Command* command : commands) {
    if (command->make == nullptr)
      add_group(*command, commands);
    else
      add(*command);
  }
}

void Parser::add_group(const Command& group, CommandTable commands) {
  CLI::App* const app = app_.add_subcommand(std::string(group.name), std::string(group.help));
  app->require_subcommand(1);
  const std::string prefix = fmt::format("{} ", group.name);
  const auto first =
      std::ranges::find_if(commands, [&](const Command* one) { return one->name.starts_with(prefix); });
  LOCKSTEP_CHECK(first != commands.end(), "the group of commands {} is empty", group.name);
  app->footer(fmt::format("Help of one of them: lockstep {} --help", (*first)->name));
}

void Parser::add(const Command& command) {
  const std::size_t space = command.name.rfind(' ');
  const bool in_group = space != std::string_view::npos;
  CLI::App& parent = in_group ? *app_.get_subcommand(std::string(command.name.substr(0, space))) : app_;
  CLI::App* const app = parent.add_subcommand(
      std::string(in_group ? command.name.substr(space + 1) : command.name), std::string(command.help));
  std::string example = "Example:\n  ";
  for (const char character : command.example)
    example += character == '\n' ? "\n  " : std::string(1, character);
  app->footer(example);
  Declared& declared = commands_.emplace_back(*app, command.make());
  declared.call->declare(declared.options);
}

std::unique_ptr<CommandCall> Parser::call_of(const CLI::App& command) {
  const auto declared = std::ranges::find(commands_, &command, &Declared::app);
  declared->options.finish();
  return std::move(declared->call);
}

}  // namespace

CommandLine parse_command_line(CommandTable commands, int argc, const char* const* argv) {
  Parser parser(commands);
  CLI::App& app = parser.app();
  const std::vector<std::string> names = command_names(app);
  const std::string all = fmt::format("Commands: {}. See: lockstep --help", name_list(names));
  if (argc < 2) throw usage_error("a command is missing", all);
  const std::string first = argv[1];
  if (first == "help" && argc > 2) {  // help train
    std::vector<const char*> command{argv[0]};
    command.insert(command.end(), argv + 2, argv + argc);
    command.push_back("--help");
    return parse_command_line(commands, static_cast<int>(command.size()), command.data());
  }
  if (first == "help") return {app.help(), nullptr};
  if (!first.starts_with('-') && std::find(names.begin(), names.end(), first) == names.end())
    throw usage_error(fmt::format("unknown command '{}'", first), with_suggestion(first, names, all));

  if (first.starts_with('-') && first != "-h" && first != "--help" && first != "--version")
    throw usage_error(fmt::format("'{}': a command comes first", first),
                      with_suggestion(first, {"--help", "--version"}, all));

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* chosen = chosen_command(app);
    return {chosen == nullptr ? app.help() : chosen->help("lockstep" + name_above(*chosen)), nullptr};
  } catch (const CLI::CallForVersion& version) {
    return {std::string(version.what()) + "\n", nullptr};
  } catch (const CLI::ExtrasError&) {
    const CLI::App* chosen = chosen_command(app);
    if (chosen == nullptr) throw usage_error(fmt::format("'{}' is followed by too much", first), all);
    throw leftover_error(*chosen);
  } catch (const CLI::ParseError& error) {
    const CLI::App* chosen = chosen_command(app);
    if (chosen == nullptr) throw usage_error(error.what(), all);
    const std::string name = full_name(*chosen);
    // A misspelt option leaves what it stood for missing too: name the cause.
    if (!chosen->remaining().empty() && chosen->remaining().front().starts_with("--"))
      throw leftover_error(*chosen);
    if (const std::vector<std::string> below = command_names(*chosen); !below.empty())
      throw missing_below(*chosen, below);
    throw usage_error(fmt::format("{}: {}", name, error.what()),
                      fmt::format("See: lockstep {} --help", name));
  }
  return {"", parser.call_of(*chosen_command(app))};
}

DescribedCommand description_of(CommandTable commands) {
  Parser parser(commands);
  return description_of(parser.app());
}

}  // namespace lockstep
