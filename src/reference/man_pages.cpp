// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/man_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/version.h"

namespace lockstep {

namespace {

using Commands = std::vector<std::pair<std::string, const DescribedCommand*>>;

/// The commands that run: "train", "checkpoint list".
void collect_commands(const DescribedCommand& group, const std::string& above, Commands& commands) {
  for (const DescribedCommand& command : group.below) {
    const std::string name = above + command.name;
    if (command.below.empty())
      commands.emplace_back(name, &command);
    else
      collect_commands(command, name + " ", commands);
  }
}

Commands commands_of(const DescribedCommand& program) {
  Commands commands;
  collect_commands(program, "", commands);
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

std::string man_option(const DescribedArgument& option) {
  std::string names;
  for (const std::string& name : option.short_names) names += fmt::format("\\fB\\-{}\\fR, ", roff(name));
  for (const std::string& name : option.long_names) names += fmt::format("\\fB\\-\\-{}\\fR, ", roff(name));
  if (option.is_positional()) names += fmt::format("\\fI{}\\fR, ", roff(option.positional));
  names.resize(names.size() - 2);
  if (option.takes_value && !option.type.empty()) names += fmt::format(" \\fI{}\\fR", roff(option.type));
  return fmt::format(".TP\n{}\n{}\n", names, roff(option.help));
}

std::string man_command(const std::string& name, const DescribedCommand& command) {
  std::string positionals, options;
  for (const DescribedArgument& option : command.arguments)
    if (!option.is_help) (option.is_positional() ? positionals : options) += man_option(option);
  std::string page =
      fmt::format(".SS lockstep {}\n{}.\n{}{}", roff(name), roff(command.help), positionals, options);
  if (!command.example.empty())
    page += fmt::format(".PP\nExample:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(command.example));
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
std::string page_of_command(const std::string& name, const DescribedCommand& command) {
  std::string positionals, options, shown;
  for (const DescribedArgument& option : command.arguments) {
    if (option.is_help) continue;
    (option.is_positional() ? positionals : options) += man_option(option);
    if (option.is_positional()) shown += fmt::format(" \\fI{}\\fR", roff(option.positional));
  }
  std::string description = command.help;
  if (!description.empty() && description[0] >= 'A' && description[0] <= 'Z')
    description[0] = static_cast<char>(description[0] - 'A' + 'a');
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"lockstep {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      "\\fBlockstep {}\\fR{} [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}.\n",
      roff(upper_case(page_name(name))), kVersion, roff(page_name(name)), roff(description), roff(name),
      shown, roff(command.help));
  if (!positionals.empty()) page += ".SH ARGUMENTS\n" + positionals;
  if (!options.empty()) page += ".SH OPTIONS\n" + options;
  if (!command.example.empty()) page += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(command.example));
  return page + kExitStatus + ".SH SEE ALSO\n.BR lockstep (1)\n";
}

}  // namespace

std::string man_page(const DescribedCommand& program) {
  std::string page = fmt::format(
      ".TH LOCKSTEP 1 \"\" \"lockstep {0}\" \"User Commands\"\n"
      ".SH NAME\nlockstep \\- data-parallel training of neural networks over MPI\n"
      ".SH SYNOPSIS\n\\fBlockstep\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.br\n"
      "\\fBmpirun \\-n\\fR \\fIN\\fR \\fBlockstep\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n{1}\nA network, its data and its training are described in a configuration file "
      "(YAML).\n"
      ".SH COMMANDS\n",
      kVersion, roff(program.help));
  for (const auto& [name, command] : commands_of(program)) page += man_command(name, *command);
  page += kExitStatus;
  page += ".SH SEE ALSO\n";
  for (const auto& [name, command] : commands_of(program))
    page += fmt::format(".BR {} (1),\n", roff(page_name(name)));
  page += ".BR mpirun (1)\n";
  return page;
}

std::vector<std::pair<std::string, std::string>> man_pages(const DescribedCommand& program) {
  std::vector<std::pair<std::string, std::string>> pages{{"lockstep.1", man_page(program)}};
  for (const auto& [name, command] : commands_of(program))
    pages.emplace_back(page_name(name) + ".1", page_of_command(name, *command));
  return pages;
}

}  // namespace lockstep
