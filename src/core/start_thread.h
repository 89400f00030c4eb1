// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Starts a thread, with an error that says what could not be started and what to do.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/thread_ban.h"

namespace lockstep {

/// `what`: "compute thread 3 of 8". Throws Error(device) if the system refuses another thread.
/// Throws Error(usage) under a ThreadBan.
template <typename Body>
std::thread start_thread(std::string_view what, Body&& body) {
  if (ThreadBan::active())
    throw Error(ErrorKind::usage,
                fmt::format("the {} cannot be started: the program has initialised MPI for a single thread "
                            "(MPI_THREAD_SINGLE)",
                            what),
                {}, "Call MPI_Init_thread with MPI_THREAD_FUNNELED or more.");
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::device, fmt::format("the {} cannot be started: {}", what, error.code().message()),
                {},
                "The limit on processes and threads may be reached: look at ulimit -u and at pids.max of the "
                "cgroup. Use fewer `threads` or fewer ranks per host, or raise the limit.");
  }
}

}  // namespace lockstep
