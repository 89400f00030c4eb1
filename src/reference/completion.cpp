// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "reference/option_catalogue.h"

namespace lockstep {

namespace {

/// What follows an option, or stands as a positional argument.
enum class Value { none, any, file, choice, key, name };

struct Argument {
  std::vector<std::string> names;  ///< "--run-dir"; empty: positional
  std::string help, type;
  Value value = Value::none;
  std::vector<std::string> choices = {};
};

struct Command {
  std::vector<std::string> path;  ///< "checkpoint", "list"
  std::string help;
  std::vector<Argument> arguments;
  std::vector<Command> below = {};
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Value value_of(const DescribedArgument& option) {
  if (!option.is_positional() && !option.takes_value) return Value::none;
  const std::string& type = option.type;
  const bool lower = type.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos;
  if (lower && type.find('|') != std::string::npos) return Value::choice;
  if (option.is_positional()) return option.positional == "KEY" ? Value::name : Value::file;
  if (type == "KEY=VALUE") return Value::key;
  for (const char* const path : {"FILE", "DIR"})
    if (type.find(path) != std::string::npos) return Value::file;
  return Value::any;
}

Argument argument_of(const DescribedArgument& option) {
  Argument argument{{}, option.help, option.type, value_of(option)};
  for (const std::string& name : option.long_names) argument.names.push_back("--" + name);
  for (const std::string& name : option.short_names) argument.names.push_back("-" + name);
  if (argument.value == Value::choice) argument.choices = split(argument.type, '|');
  if (option.is_positional()) argument.type = option.positional;
  return argument;
}

std::vector<Command> commands_of(const DescribedCommand& group, const std::vector<std::string>& above = {}) {
  std::vector<Command> commands;
  for (const DescribedCommand& described : group.below) {
    Command command{above, described.help, {}};
    command.path.push_back(described.name);
    for (const DescribedArgument& option : described.arguments)
      command.arguments.push_back(argument_of(option));
    command.below = commands_of(described, command.path);
    commands.push_back(std::move(command));
  }
  return commands;
}

/// Calls `use` with each command that runs.
void for_each_command(const std::vector<Command>& commands, auto use) {
  for (const Command& command : commands) {
    if (command.below.empty())
      use(command);
    else
      for_each_command(command.below, use);
  }
}

std::string replaced(std::string text, std::string_view characters, std::string_view before) {
  for (std::size_t at = text.find_first_of(characters); at != std::string::npos;
       at = text.find_first_of(characters, at + before.size() + 1))
    text.insert(at, before);
  return text;
}

/// In single quotes, for zsh and bash.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// -------------------------------------------------------------------------------------------------- bash

std::string bash_script(const std::vector<Command>& commands, const CompletionWords& known) {
  std::string cases, first_words, groups;
  for (const Command& command : commands) {
    first_words += command.path.back() + " ";
    std::string below;
    for (const Command& sub : command.below) below += sub.path.back() + " ";
    if (!below.empty()) groups += fmt::format("      {}) words='{}' ;;\n", command.path.back(), below);
  }
  for_each_command(commands, [&](const Command& command) {
    std::vector<std::string> words;
    std::string values, positional;
    bool names = false;
    for (const Argument& argument : command.arguments) {
      words.insert(words.end(), argument.names.begin(), argument.names.end());
      names = names || argument.value == Value::name;
      if (argument.value == Value::choice && argument.names.empty())
        positional = fmt::format("{}", fmt::join(argument.choices, " "));
      else if (argument.value == Value::choice)
        values += fmt::format("        {}) words='{}' ;;\n", fmt::join(argument.names, "|"),
                              fmt::join(argument.choices, " "));
    }
    cases +=
        fmt::format("    '{}')\n      options='{}'\n", fmt::join(command.path, " "), fmt::join(words, " "));
    if (names) cases += "      [[ $current == -* ]] || words=$names\n";
    if (!positional.empty()) cases += fmt::format("      [[ $current == -* ]] || words='{}'\n", positional);
    if (!values.empty()) cases += fmt::format("      case $previous in\n{}      esac\n", values);
    cases += "      ;;\n";
  });
  return fmt::format(
      R"(# Completion of lockstep for bash. Written by `lockstep completion bash`.
_lockstep() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= words= options= i
  local keys='{keys}'
  local names='{names}'
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
      fmt::arg("keys", fmt::join(known.keys, " ")), fmt::arg("names", fmt::join(known.names, " ")),
      fmt::arg("first", first_words), fmt::arg("groups", groups), fmt::arg("cases", cases));
}

// --------------------------------------------------------------------------------------------------- zsh

/// The part of an _arguments line after the option: ":message:action".
std::string zsh_value(const Argument& argument) {
  const std::string message = replaced(argument.type, ":\\", "\\");
  switch (argument.value) {
    case Value::none:
      return {};
    case Value::any:
      return fmt::format(":{}: ", message);
    case Value::file:
      return fmt::format(":{}:_files", message);
    case Value::choice:
      return fmt::format(":{}:({})", message, fmt::join(argument.choices, " "));
    case Value::key:
      return fmt::format(":{}:_lockstep_keys", message);
    case Value::name:
      return fmt::format(":{}:_lockstep_names", message);
  }
  return {};
}

std::string zsh_described(const std::string& name, const std::string& help) {
  return quoted(fmt::format("{}:{}", name, replaced(help, ":\\", "\\")));
}

std::string zsh_commands(const std::vector<Command>& commands, const std::string& indent);

std::string zsh_command(const Command& command, const std::string& indent) {
  if (!command.below.empty()) return zsh_commands(command.below, indent);
  std::string text = indent + "_arguments -s";
  for (const Argument& argument : command.arguments) {
    const std::string help = replaced(argument.help, "[]:\\", "\\");
    if (argument.names.empty()) text += " \\\n" + indent + "  " + quoted("*" + zsh_value(argument));
    for (const std::string& name : argument.names)
      text += fmt::format(" \\\n{}  {}", indent,
                          quoted(fmt::format("*{}[{}]{}", name, help, zsh_value(argument))));
  }
  return text + "\n";
}

/// Offers the commands, or completes the arguments of the one that was given.
std::string zsh_commands(const std::vector<Command>& commands, const std::string& indent) {
  std::string text = indent +
                     "_arguments -C '(- *)'{-h,--help}'[Print help]' '1: :->command' '*:: :->arguments'\n" +
                     indent + "case $state in\n" + indent + "  command)\n" + indent + "    commands=(\n";
  for (const Command& command : commands)
    text += fmt::format("{}      {}\n", indent, zsh_described(command.path.back(), command.help));
  text += indent + "    )\n" + indent + "    _describe command commands\n" + indent + "    ;;\n" + indent +
          "  arguments)\n" + indent + "    case $words[1] in\n";
  for (const Command& command : commands)
    text += fmt::format("{0}      {1})\n{2}{0}        ;;\n", indent, command.path.back(),
                        zsh_command(command, indent + "        "));
  return text + indent + "    esac\n" + indent + "    ;;\n" + indent + "esac\n";
}

std::string zsh_script(const std::vector<Command>& commands, const CompletionWords& known) {
  return fmt::format(
      R"(#compdef lockstep
# Completion of lockstep for zsh. Written by `lockstep completion zsh`.
_lockstep_keys() {{
  local -a keys
  keys=({keys})
  compset -P '*=' && return
  compadd -S '=' -q -a keys
}}
_lockstep_names() {{
  local -a names
  names=({names})
  compadd -a names
}}
_lockstep() {{
  local curcontext="$curcontext" state line
  local -a commands
{body}}}
if [ "$funcstack[1]" = _lockstep ]; then
  _lockstep "$@"
else
  compdef _lockstep lockstep
fi
)",
      fmt::arg("keys", fmt::join(known.keys, " ")), fmt::arg("names", fmt::join(known.names, " ")),
      fmt::arg("body", zsh_commands(commands, "  ")));
}

// -------------------------------------------------------------------------------------------------- fish

std::string fish_quoted(const std::string& text) { return "'" + replaced(text, "\\'", "\\") + "'"; }

/// The arguments of `complete` for an option or a positional argument.
std::string fish_argument(const Argument& argument) {
  std::string text;
  for (const std::string& name : argument.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  switch (argument.value) {
    case Value::none:
      break;
    case Value::any:
      text += " -x";
      break;
    case Value::file:
      text += argument.names.empty() ? " -F" : " -r -F";
      break;
    case Value::choice:
      text += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(argument.choices, " "))));
      break;
    case Value::key:
      text += " -x -a '(__lockstep_keys)'";
      break;
    case Value::name:
      text += " -x -a '(__lockstep_names)'";
      break;
  }
  return text;
}

std::string fish_script(const std::vector<Command>& commands, const CompletionWords& known) {
  std::string text = fmt::format(
      R"(# Completion of lockstep for fish. Written by `lockstep completion fish`.
function __lockstep_keys
  printf '%s=\n' {keys}
end
function __lockstep_names
  printf '%s\n' {names}
end
# True if the words before the cursor that are no options begin with these, and no command follows them.
function __lockstep_at
  set -l given (commandline -opc)
  set -e given[1]
  set -l words
  for word in $given
    string match -q -- '-*' $word; or set -a words $word
  end
  test (count $words) -ge (count $argv); or return 1
  for i in (seq (count $argv))
    test $words[$i] = $argv[$i]; or return 1
  end
end
function __lockstep_first
  set -l words (commandline -opc)
  test (count $words) -eq $argv[1]
end
complete -c lockstep -f
complete -c lockstep -n '__lockstep_first 1' -l version -d 'Print the version'
complete -c lockstep -n '__lockstep_first 1' -l help -d 'Print help'
complete -c lockstep -n '__lockstep_first 1' -a help -d 'Print help of a command'
)",
      fmt::arg("keys", fmt::join(known.keys, " ")), fmt::arg("names", fmt::join(known.names, " ")));
  for (const Command& command : commands) {
    text += fmt::format("complete -c lockstep -n '__lockstep_first 1' -a {} -d {}\n", command.path.back(),
                        fish_quoted(command.help));
    for (const Command& below : command.below)
      text += fmt::format("complete -c lockstep -n '__lockstep_at {}; and __lockstep_first 2' -a {} -d {}\n",
                          command.path.back(), below.path.back(), fish_quoted(below.help));
  }
  for_each_command(commands, [&](const Command& command) {
    for (const Argument& argument : command.arguments)
      text += fmt::format("complete -c lockstep -n '__lockstep_at {}'{} -d {}\n",
                          fmt::join(command.path, " "), fish_argument(argument), fish_quoted(argument.help));
  });
  return text;
}

}  // namespace

CompletionWords completion_words() {
  std::set<std::string> keys, names;
  for (const CatalogueEntry& entry : option_catalogue()) {
    if (!entry.name.empty()) names.insert(entry.name);
    std::string section = entry.kind == "section" ? entry.name : "";
    if (entry.kind == "data" || entry.kind == "reader") section = "data";
    if (entry.kind == "optimizer") section = "optimizer";
    if (section.empty() && entry.title != "Top level") continue;
    for (const ParamSpec& option : entry.table)
      keys.insert(section.empty() ? std::string(option.name) : fmt::format("{}.{}", section, option.name));
  }
  names.insert(keys.begin(), keys.end());
  return {{keys.begin(), keys.end()}, {names.begin(), names.end()}};
}

std::string completion_script(const DescribedCommand& program, const CompletionWords& words,
                              std::string_view shell) {
  const std::vector<Command> commands = commands_of(program);
  if (shell == "zsh") return zsh_script(commands, words);
  if (shell == "fish") return fish_script(commands, words);
  return bash_script(commands, words);
}

}  // namespace lockstep
