// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_pages.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/version.h"

namespace lockstep {

namespace {

constexpr auto every_command = [](const CLI::App*) { return true; };
constexpr auto every_option = [](const CLI::Option*) { return true; };

/// The commands that run: "train", "checkpoint list".
void collect_commands(const CLI::App& app, const std::string& above,
                      std::vector<std::pair<std::string, const CLI::App*>>& commands) {
  for (const CLI::App* command : app.get_subcommands(every_command)) {
    const std::string name = above + command->get_name();
    if (command->get_subcommands(every_command).empty())
      commands.emplace_back(name, command);
    else
      collect_commands(*command, name + " ", commands);
  }
}

std::vector<std::pair<std::string, const CLI::App*>> commands_of(const CLI::App& app) {
  std::vector<std::pair<std::string, const CLI::App*>> commands;
  collect_commands(app, "", commands);
  return commands;
}

/// Text as roff shows it: a hyphen is one that can be copied, and no line is a request.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else if (c == '\'')
      escaped += "\\(aq";
    else if (c == '.' && (escaped.empty() || escaped.back() == '\n'))
      escaped += "\\&.";
    else
      escaped += c;
  }
  return escaped;
}

bool is_flag(const CLI::Option& option) { return option.get_type_size() == 0; }
bool is_positional(const CLI::Option& option) { return option.get_positional(); }

std::string man_option(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += fmt::format("\\fB\\-{}\\fR, ", roff(name));
  for (const std::string& name : option.get_lnames()) names += fmt::format("\\fB\\-\\-{}\\fR, ", roff(name));
  if (is_positional(option)) names += fmt::format("\\fI{}\\fR, ", roff(option.get_name(true)));
  names.resize(names.size() - 2);
  if (!is_flag(option) && !option.get_type_name().empty())
    names += fmt::format(" \\fI{}\\fR", roff(option.get_type_name()));
  return fmt::format(".TP\n{}\n{}\n", names, roff(option.get_description()));
}

std::string man_command(const std::string& name, const CLI::App& command) {
  std::string positionals, options;
  for (const CLI::Option* option : command.get_options(every_option))
    if (option != command.get_help_ptr())
      (is_positional(*option) ? positionals : options) += man_option(*option);
  std::string page = fmt::format(".SS lockstep {}\n{}.\n{}{}", roff(name), roff(command.get_description()),
                                 positionals, options);
  const std::string footer = command.get_footer();
  if (const std::size_t line = footer.find('\n'); line != std::string::npos)
    page += fmt::format(".PP\nExample:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(footer.substr(line + 1)));
  return page;
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nDone.\n.TP\n1\nThe run failed, or what was compared differs.\n"
    ".TP\n2\nThe command line or the configuration is wrong.\n.TP\n3\nThe data are wrong.\n"
    ".TP\n4\nA checkpoint is damaged or cannot be written.\n"
    ".TP\n75\nSaved before the end: start the run again.\n.TP\n130\nSaved and stopped by the user.\n";

std::string page_name(std::string_view command) {
  std::string name = "lockstep";
  for (std::string_view rest = command; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    name += "-" + std::string(word);
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return name;
}

std::string upper_case(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

/// lockstep-train(1).
std::string page_of_command(const std::string& name, const CLI::App& command) {
  std::string positionals, options, shown;
  for (const CLI::Option* option : command.get_options(every_option)) {
    if (option == command.get_help_ptr()) continue;
    (is_positional(*option) ? positionals : options) += man_option(*option);
    if (is_positional(*option)) shown += fmt::format(" \\fI{}\\fR", roff(option->get_name(true)));
  }
  std::string description = command.get_description();
  if (!description.empty() && description[0] >= 'A' && description[0] <= 'Z')
    description[0] = static_cast<char>(description[0] - 'A' + 'a');
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"lockstep {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      "\\fBlockstep {}\\fR{} [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}.\n",
      roff(upper_case(page_name(name))), kVersion, roff(page_name(name)), roff(description), roff(name),
      shown, roff(command.get_description()));
  if (!positionals.empty()) page += ".SH ARGUMENTS\n" + positionals;
  if (!options.empty()) page += ".SH OPTIONS\n" + options;
  const std::string footer = command.get_footer();
  if (const std::size_t line = footer.find('\n'); line != std::string::npos)
    page += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(footer.substr(line + 1)));
  return page + kExitStatus + ".SH SEE ALSO\n.BR lockstep (1)\n";
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH LOCKSTEP 1 \"\" \"lockstep {0}\" \"User Commands\"\n"
      ".SH NAME\nlockstep \\- data-parallel training of neural networks over MPI\n"
      ".SH SYNOPSIS\n\\fBlockstep\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.br\n"
      "\\fBmpirun \\-n\\fR \\fIN\\fR \\fBlockstep\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n{1}\nA network, its data and its training are described in a configuration file "
      "(YAML).\n"
      ".SH COMMANDS\n",
      kVersion, roff(app.get_description()));
  for (const auto& [name, command] : commands_of(app)) page += man_command(name, *command);
  page += kExitStatus;
  page += ".SH SEE ALSO\n";
  for (const auto& [name, command] : commands_of(app))
    page += fmt::format(".BR {} (1),\n", roff(page_name(name)));
  page += ".BR mpirun (1)\n";
  return page;
}

std::vector<std::pair<std::string, std::string>> man_pages(const CLI::App& app) {
  std::vector<std::pair<std::string, std::string>> pages{{"lockstep.1", man_page(app)}};
  for (const auto& [name, command] : commands_of(app))
    pages.emplace_back(page_name(name) + ".1", page_of_command(name, *command));
  return pages;
}

}  // namespace lockstep
