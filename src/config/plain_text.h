// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Help texts of the tables of options as lines for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

/// Broken into lines of at most 88 characters, each after so many blanks.
std::string wrapped(std::string_view text, std::size_t indent);
/// Lines with so many blanks before each.
std::string indented(std::string_view lines, std::size_t indent);
/// Up to the first full stop, semicolon or colon.
std::string_view first_sentence(std::string_view text);

}  // namespace lockstep
