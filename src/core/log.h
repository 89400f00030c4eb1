// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The log of the process. The chief (rank 0) logs to the terminal and to a file in the run directory. Other
// ranks log only warnings and errors, prefixed with their rank.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/log_level.h"
#include "core/shown_text.h"

namespace lockstep {

/// Sets the lowest level that standard error shows; ranks other than 0 show warnings and errors only. `rank`
/// < 0 means a single process.
void configure_log(int rank, LogLevel level);
/// Appends lines of level info and above to this file, too, independently of what standard error shows.
void log_to_file(const std::string& path);
/// Ends that, in a process that goes on after the run.
void end_log_file();
/// Lines of `text` that two blanks begin stay.
void log_line(LogLevel level, std::string_view text);

// An argument that is a text is one line; MessageLines (core/message_lines.h) are several.

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::debug, shown_format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::info, shown_format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::warning, shown_format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::error, shown_format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep
