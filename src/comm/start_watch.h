// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The time limit of the start. MPI_Init_thread and the first collective calls wait for ever if another rank
// has stopped, or was never started; the watchdog, which needs MPI, is not there yet.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep {

class StartWatch {
 public:
  /// `expired(message)` is called from the watch's thread `limit_seconds` after the construction, unless the
  /// watch is destroyed before. `who` is this process in the message ("rank 1 of 3 on host n01"). 0: no
  /// limit.
  StartWatch(double limit_seconds, std::string who, std::function<void(const std::string&)> expired);
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

  /// What the process does now: "MPI_Init_thread".
  void set_phase(const char* phase);

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  const char* phase_ = "the start";
  std::thread thread_;
};

}  // namespace lockstep
