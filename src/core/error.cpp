// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include "core/message_lines.h"
#include "core/shown_text.h"

namespace lockstep {

namespace {

/// Added to a kind, it tells the constructor of an error_of_lines().
constexpr int kLines = 1 << 16;

bool has_lines(ErrorKind kind) { return (static_cast<int>(kind) & kLines) != 0; }

std::string one_line(const std::string& text) { return shown_text(shown_message(text)); }

std::string shown(ErrorKind kind, const std::string& text) {
  return has_lines(kind) ? shown_message(text) : one_line(text);
}

std::string joined(const std::string& what_happened, const std::string& where, const std::string& advice) {
  std::string text = where.empty() ? what_happened : where + ": " + what_happened;
  if (!advice.empty()) text += "\n  " + advice;
  return text;
}
}  // namespace

Error::Error(ErrorKind kind, std::string what_happened, std::string where, std::string advice)
    : std::runtime_error(joined(shown(kind, what_happened), one_line(where), shown(kind, advice))),
      kind_(static_cast<ErrorKind>(static_cast<int>(kind) & ~kLines)),
      what_happened_(shown(kind, what_happened)),
      where_(one_line(where)),
      advice_(shown(kind, advice)) {}

Error error_of_lines(ErrorKind kind, std::string what_happened, std::string where, std::string advice) {
  return Error(static_cast<ErrorKind>(static_cast<int>(kind) | kLines), std::move(what_happened),
               std::move(where), std::move(advice));
}

MessageLines message_of(const std::exception& error) {
  const auto* const own = dynamic_cast<const Error*>(&error);
  return {own != nullptr ? std::string(error.what()) : one_line(error.what())};
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::config:
      return 2;
    case ErrorKind::data:
      return 3;
    case ErrorKind::checkpoint:
      return 4;
    case ErrorKind::communication:
    case ErrorKind::device:
    case ErrorKind::numeric:
    case ErrorKind::output:
    case ErrorKind::bug:
      return 1;
  }
  return 1;
}

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::config:
      return "config";
    case ErrorKind::data:
      return "data";
    case ErrorKind::checkpoint:
      return "checkpoint";
    case ErrorKind::communication:
      return "communication";
    case ErrorKind::device:
      return "device";
    case ErrorKind::numeric:
      return "numeric";
    case ErrorKind::output:
      return "output";
    case ErrorKind::bug:
      return "bug";
  }
  return "unknown";
}

void throw_check_failure(const char* expression, const char* file, int line, const std::string& detail) {
  throw Error(ErrorKind::bug,
              fmt::format("broken invariant: {}{}{}", expression, detail.empty() ? "" : ": ", detail),
              fmt::format("{}:{}", file, line),
              "This is a defect of Lockstep; please report it with the command and the log.");
}

}  // namespace lockstep
