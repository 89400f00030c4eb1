// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Text of others (names of classes, tensors, columns, metrics, files) in what a person reads: a terminal must
// not act on it, and it must not look like lines of the program. What a terminal may act on is written
// visibly: "\n", "\t", "\r", "\x1b" for a byte (control characters, and bytes that are no UTF-8), "\u009b"
// for a code point (C1 control characters, line separators, changes of the direction of writing). All other
// UTF-8 stays. A text that has been through one of these functions comes out of all of them as it is.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

/// In one line.
std::string shown_text(std::string_view text);

/// A text of several lines: its line ends and tabs stay.
std::string shown_lines(std::string_view text);

/// A message: tabs stay, and a line end if two blanks follow it, as all further lines of messages begin. A
/// line that is very long, because the user typed or a file has it, keeps its begin and its end.
std::string shown_message(std::string_view text);

/// The number of bytes of the code point that `text` begins with; 0 if it begins with none. Overlong forms,
/// surrogates and numbers above U+10FFFF are none (RFC 3629).
std::size_t utf8_bytes(std::string_view text);

/// An argument of shown_format().
template <typename T>
decltype(auto) shown_argument(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return shown_text(value);
  else
    return (value);
}

/// fmt::format() with shown_text() of each argument that is a text.
template <typename... Args>
std::string shown_format(fmt::format_string<Args...> format, Args&&... args) {
  const auto formatted = [&](const auto&... shown) {
    return fmt::vformat(format, fmt::make_format_args(shown...));
  };
  return formatted(shown_argument(args)...);
}

}  // namespace lockstep
