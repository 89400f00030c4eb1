// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors with the information that a person needs to act on them. LOCKSTEP_REQUIRE reports errors of the user
// and of the environment, LOCKSTEP_CHECK reports defects of Lockstep; both throw Error. Only `main` turns an
// Error into an exit code.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep {

/// output: what the program writes to is full, closed or gone.
enum class ErrorKind { usage, config, data, checkpoint, communication, device, numeric, output, bug };

/// The program's exit code: 0 finished, 1 failed, 2 bad usage or configuration, 3 bad data, 4 bad checkpoint.
int exit_code(ErrorKind kind);
const char* name_of(ErrorKind kind);

/// One error: `what_happened`, `where` ("file:line:column", "file, record 7"; may be empty) and `advice` on
/// what to do (may be empty). what() joins them: "where: what happened\n advice".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string what_happened, std::string where = {}, std::string advice = {});

  ErrorKind kind() const { return kind_; }
  const std::string& what_happened() const { return what_happened_; }
  const std::string& where() const { return where_; }
  const std::string& advice() const { return advice_; }

 private:
  ErrorKind kind_;
  std::string what_happened_, where_, advice_;
};

[[noreturn]] void throw_check_failure(const char* expression, const char* file, int line,
                                      const std::string& detail);

}  // namespace lockstep

/// A condition on the user's input or the environment. Throws Error(kind, formatted message) if it is false.
#define LOCKSTEP_REQUIRE(condition, kind, ...)                 \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      throw ::lockstep::Error(kind, fmt::format(__VA_ARGS__)); \
  } while (false)

/// An invariant of Lockstep; also checked in release builds. Throws Error(bug) with expression, place and
/// message.
#define LOCKSTEP_CHECK(condition, ...)                                                              \
  do {                                                                                              \
    if (!(condition)) [[unlikely]]                                                                  \
      ::lockstep::throw_check_failure(#condition, __FILE__, __LINE__, fmt::format("" __VA_ARGS__)); \
  } while (false)

/// LOCKSTEP_CHECK for hot loops: checked in debug builds only.
#ifdef NDEBUG
#define LOCKSTEP_DCHECK(condition, ...) \
  do {                                  \
  } while (false)
#else
#define LOCKSTEP_DCHECK(condition, ...) LOCKSTEP_CHECK(condition, __VA_ARGS__)
#endif
