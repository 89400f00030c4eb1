// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The log: one logger for the process. The chief logs to the terminal and to the run directory; other ranks
// log warnings and errors only, with their rank in front.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace lockstep {

enum class LogLevel { debug, info, warning, error };

/// Sets what standard error shows: nothing below `level`, and on ranks other than 0 nothing below warning.
/// `rank` < 0: a single process.
void configure_log(int rank, LogLevel level);
/// From now on lines of level info and above go to this file too (appended), whatever standard error shows.
void log_to_file(const std::string& path);
void log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep
