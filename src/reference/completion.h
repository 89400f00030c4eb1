// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Completion of the command line in bash, zsh and fish: commands, options, values that are one of a few,
// files, keys of a configuration after --set, and what `lockstep explain` explains. From the table of
// commands that also makes --help.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/command_description.h"

namespace lockstep {

/// The words that complete in addition to commands and options.
struct CompletionWords {
  std::vector<std::string> keys;   ///< after --set
  std::vector<std::string> names;  ///< after explain
};
/// The words of the tables of options.
CompletionWords completion_words();

/// `shell`: bash, zsh or fish.
std::string completion_script(const DescribedCommand& program, const CompletionWords& words,
                              std::string_view shell);

}  // namespace lockstep
