// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How to wait for a library that another thread of the process drives: NCCL accepts a nonblocking call in a
// thread that it creates for it, which takes tens of microseconds. A sleep at that point costs more than the
// call, so the waiting thread yields the processor for the first milliseconds and sleeps only after them.
#pragma once

#include <chrono>
#include <thread>

namespace lockstep {

inline constexpr double kPollSpinSeconds = 2e-3;

/// How long to sleep between two queries, `waited_seconds` after the first; 0: yield.
inline std::chrono::microseconds poll_pause(double waited_seconds) {
  return std::chrono::microseconds(waited_seconds < kPollSpinSeconds ? 0 : 100);
}

inline void pause_between_polls(double waited_seconds) {
  const std::chrono::microseconds pause = poll_pause(waited_seconds);
  pause.count() == 0 ? std::this_thread::yield() : std::this_thread::sleep_for(pause);
}

}  // namespace lockstep
