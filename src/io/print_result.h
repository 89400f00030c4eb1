// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of commands on standard output. If they cannot be written (a full disk, a closed pipe), every
// command ends with exit code 1 and the same message.
//
// Results for people pass core/shown_text.h here: print_result() and print_lines(). Those for programs (JSON,
// CSV, YAML, generated text), which quote texts by their own rules, and lines with colours, whose parts have
// passed it already (TextLine), go out as they are: print_as_is().
#pragma once

#include <fmt/format.h>
#include <stdio_ext.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/shown_text.h"

namespace lockstep {

inline constexpr std::string_view kOutputFailed = "standard output could not be written";
inline constexpr std::string_view kOutputAdvice =
    "The disk may be full, or the reader of the pipe has ended.";

/// Throws Error(output) if `ok` is false. What could not be written is dropped, so that the end of the
/// program does not try and report it again.
inline void require_printed(std::FILE* out, bool ok) {
  if (ok) return;
  ::__fpurge(out);
  std::clearerr(out);
  throw Error(ErrorKind::output, std::string(kOutputFailed), "", std::string(kOutputAdvice));
}

inline void flush_results(std::FILE* out) { require_printed(out, std::fflush(out) == 0); }

inline void print_as_is(std::FILE* out, std::string_view text) {
  require_printed(out, std::fwrite(text.data(), 1, text.size(), out) == text.size());
}
/// To standard output; flushes it, so that a failure is noticed here, as the functions below do.
inline void print_as_is(std::string_view text) {
  print_as_is(stdout, text);
  flush_results(stdout);
}

/// Lines of which shown_format() has made each, or whose texts are in one line for another reason.
inline void print_lines(std::FILE* out, std::string_view text) { print_as_is(out, shown_lines(text)); }
inline void print_lines(std::string_view text) {
  print_lines(stdout, text);
  flush_results(stdout);
}

/// Prints to standard output. Line ends and tabs of an argument that is a text are shown as such.
template <typename... Args>
void print_result(fmt::format_string<Args...> format, Args&&... args) {
  print_lines(shown_format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep
