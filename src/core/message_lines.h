// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages of several lines: a table of ranks, differences of configurations. An Error has one line and one
// advice, and an argument of log_info() and its like is one line, whatever names of others are in them
// (core/shown_text.h). Lines that the program itself makes are passed on by what is here.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>

#include "core/error.h"

namespace lockstep {

/// A text whose line ends stay, as an argument of log_info() and shown_format(). Its further lines begin with
/// two blanks. shown_text() or shown_format() has made what others have written in it.
struct MessageLines {
  std::string text;
};

/// As Error(), for texts with such lines.
Error error_of_lines(ErrorKind kind, std::string what_happened, std::string where = {},
                     std::string advice = {});

/// what(); that of an Error with its lines, that of any other exception in one.
MessageLines message_of(const std::exception& error);

}  // namespace lockstep

template <>
struct fmt::formatter<lockstep::MessageLines> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const lockstep::MessageLines& lines, Context& context) const {
    return fmt::formatter<std::string_view>::format(lines.text, context);
  }
};
