// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The time limit of the start. MPI_Init_thread and the first collective calls wait for ever if another rank
// has stopped, or was never started; the watchdog, which needs MPI, is not there yet. A notice before the
// limit says how long it is, so that nobody takes the wait for a hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep {

class StartWatch {
 public:
  struct Options {
    double limit_seconds = 300;  ///< since the construction; 0: no limit
    double notice_seconds = 0;   ///< since the construction; 0: no notice
    std::string who;             ///< this process in the messages: "rank 1 on host n01"
  };
  using Say = std::function<void(const std::string& message)>;

  /// Calls `notice`, and `expired` after it, from the watch's thread, each at its time, unless the watch is
  /// destroyed before. There is no notice at or after the limit.
  StartWatch(Options options, Say notice, Say expired);
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

  /// What the process does now: "MPI_Init_thread".
  void set_phase(const char* phase);

 private:
  /// Waits until `seconds` after the construction. True: the watch is still needed.
  bool wait_until(double seconds);
  /// "rank 1 on host n01 has waited 10 s in 'MPI_Init_thread' while the run starts".
  std::string wait_text(double seconds);

  const Options options_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  const char* phase_ = "the start";
  std::thread thread_;
};

}  // namespace lockstep
