// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of files in commands that a message advises: a person copies them into a shell, which must not act on
// the names.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// The name as one word of a command, in quotes if it has a character that a shell acts on. It is no option.
std::string shell_word(const std::string& name);

/// The name between the single quotes of `python3 -c "... open('NAME') ..."`; FILE for one that would end
/// quotes, or that a shell acts on in them.
std::string name_in_quotes(const std::string& name);

}  // namespace lockstep
