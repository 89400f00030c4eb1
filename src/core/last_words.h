// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The message of a process that ends itself and the other ranks: to standard error, and to what a run
// registers here (its log and its status). Other threads may hang at that time, with locks in hand or in a
// call of a disk that does not answer, so the message has a thread of its own, which is not waited for
// without a limit.
#pragma once

#include <functional>
#include <string>

namespace lockstep {

/// `message` begins with "error: " and may have several lines; `exit_code`: that the process ends with. Takes
/// no lock that a thread of the run may hold while it waits.
using LastWordsFunction = std::function<void(const std::string& message, int exit_code)>;

/// For the run that begins; an empty function when it has ended.
void set_last_words(LastWordsFunction function);

/// Prints the message and calls the function. Returns when that is done, after `seconds` at the latest.
void say_last_words(const std::string& message, int exit_code, double seconds) noexcept;

/// Enough for a disk that works; the time limits of the watchdog have room for it.
inline constexpr double kLastWordsSeconds = 2;

}  // namespace lockstep
