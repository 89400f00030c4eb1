// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The program's commands as data: what manual pages and completion are made from. The command line describes
// itself in this form.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// An option or a positional argument of a command.
struct DescribedArgument {
  std::vector<std::string> long_names, short_names;  ///< "run-dir"; both empty: positional
  std::string positional;                            ///< the name of a positional argument: "CONFIG"
  std::string type;                                  ///< of the value: "FILE", "auto|never|must"
  std::string help;
  bool takes_value = true;  ///< false: a flag
  bool is_help = false;     ///< --help itself

  bool is_positional() const { return !positional.empty(); }
};

/// A command with its arguments, or a group of commands.
struct DescribedCommand {
  std::string name;  ///< one word: "list" of `checkpoint list`
  std::string help;
  std::string example;  ///< command lines; empty if there is none
  std::vector<DescribedArgument> arguments = {};
  std::vector<DescribedCommand> below = {};
};

}  // namespace lockstep
