// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

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

/// The names of an option, as they are typed.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> words;
  for (const std::string& name : option.get_lnames()) words.push_back("--" + name);
  for (const std::string& name : option.get_snames()) words.push_back("-" + name);
  return words;
}

/// The values of an option such as auto|never|must; empty if it takes others, too.
std::string values_of(const CLI::Option& option) {
  std::string values = option.get_type_name();
  if (values.find('|') == std::string::npos ||
      values.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos)
    return "";
  std::replace(values.begin(), values.end(), '|', ' ');
  return values;
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
  page +=
      ".SH EXIT STATUS\n"
      ".TP\n0\nDone.\n.TP\n1\nThe run failed, or what was compared differs.\n"
      ".TP\n2\nThe command line or the configuration is wrong.\n.TP\n3\nThe data are wrong.\n"
      ".TP\n4\nA checkpoint is damaged or cannot be written.\n"
      ".TP\n75\nSaved before the end: start the run again.\n.TP\n130\nSaved and stopped by the user.\n"
      ".SH SEE ALSO\n.BR mpirun (1)\n";
  return page;
}

std::string bash_completion(const CLI::App& app, const std::vector<std::string>& configuration_keys) {
  std::string cases, first_words, groups;
  for (const CLI::App* command : app.get_subcommands(every_command)) {
    first_words += command->get_name() + " ";
    std::string below;
    for (const CLI::App* sub : command->get_subcommands(every_command)) below += sub->get_name() + " ";
    if (!below.empty()) groups += fmt::format("      {}) words='{}' ;;\n", command->get_name(), below);
  }
  for (const auto& [name, command] : commands_of(app)) {
    std::vector<std::string> words;
    std::string values;
    for (const CLI::Option* option : command->get_options(every_option)) {
      const std::vector<std::string> names = names_of(*option);
      words.insert(words.end(), names.begin(), names.end());
      if (const std::string known = values_of(*option); !known.empty() && !names.empty())
        values += fmt::format("        {}) words='{}' ;;\n", fmt::join(names, "|"), known);
    }
    cases += fmt::format("    '{}')\n      options='{}'\n", name, fmt::join(words, " "));
    if (!values.empty()) cases += fmt::format("      case $previous in\n{}      esac\n", values);
    cases += "      ;;\n";
  }
  return fmt::format(
      R"(# Completion of lockstep for bash. Written by `lockstep completion`.
_lockstep() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= words= options= i
  local keys='{keys}'
  COMPREPLY=()
  # bash splits KEY=VALUE at the sign: nothing is completed after it.
  if [ "$current" = = ] || [ "$previous" = = ]; then
    compopt -o default
    return
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [ "${{COMP_WORDS[i]##*/}}" = lockstep ]; then  # after mpirun
      command=
      continue
    fi
    [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command=${{COMP_WORDS[i]}}; break; }}
  done
  if [ -z "$command" ]; then
    words='{first} help --help --version'
  else
    case $command in
{groups}    esac
    if [ -n "$words" ] && ((i + 1 < COMP_CWORD)); then
      command+=" ${{COMP_WORDS[i + 1]}}"
      words=
    fi
    case $command in
{cases}    esac
    case $previous in
      --set) words=$keys; compopt -o nospace ;;
    esac
    [ -n "$words" ] || [[ $current != -* ]] || words=$options
  fi
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    if [ "$previous" = --set ]; then COMPREPLY=("${{COMPREPLY[@]/%/=}}"); fi
  else
    compopt -o default
  fi
}}
complete -F _lockstep lockstep
)",
      fmt::arg("keys", fmt::join(configuration_keys, " ")), fmt::arg("first", first_words),
      fmt::arg("groups", groups), fmt::arg("cases", cases));
}

}  // namespace lockstep
