// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Help texts of the tables of options as lines for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

/// `text` in lines of at most 88 characters, each after `indent` blanks.
std::string wrapped(std::string_view text, std::size_t indent);
/// `lines` with `indent` blanks before each.
std::string indented(std::string_view lines, std::size_t indent);
/// The part of `text` up to its first full stop, semicolon or colon.
std::string_view first_sentence(std::string_view text);

}  // namespace lockstep
