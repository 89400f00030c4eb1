// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of commands on standard output. If they cannot be written (a full disk, a closed pipe), every
// command ends with exit code 1 and the same message.
#pragma once

#include <fmt/format.h>
#include <stdio_ext.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/error.h"

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

inline void print_result(std::FILE* out, std::string_view text) {
  require_printed(out, std::fwrite(text.data(), 1, text.size(), out) == text.size());
}

/// Prints to standard output, and flushes it, so that a failure is noticed here.
template <typename... Args>
void print_result(fmt::format_string<Args...> format, Args&&... args) {
  print_result(stdout, fmt::format(format, std::forward<Args>(args)...));
  flush_results(stdout);
}

}  // namespace lockstep
