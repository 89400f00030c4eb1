// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include "core/shown_text.h"

namespace lockstep {

namespace {
std::string joined(const std::string& what_happened, const std::string& where, const std::string& advice) {
  std::string text = where.empty() ? what_happened : where + ": " + what_happened;
  if (!advice.empty()) text += "\n  " + advice;
  return text;
}
}  // namespace

Error::Error(ErrorKind kind, std::string what_happened, std::string where, std::string advice)
    : std::runtime_error(
          joined(shown_message(what_happened), shown_text(shown_message(where)), shown_message(advice))),
      kind_(kind),
      what_happened_(shown_message(what_happened)),
      where_(shown_text(shown_message(where))),
      advice_(shown_message(advice)) {}

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
