// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The watchdog: a thread that ends the run when one communication call stays open for longer than the limit,
// with one message that says which rank waited where, in which call and in which phase of the program, and
// what it did before.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "comm/flight_recorder.h"

namespace lockstep {

class Watchdog {
 public:
  /// `expired(message)` is called once, from the watchdog's thread; it usually prints and aborts.
  Watchdog(double timeout_seconds, int rank, int ranks, std::string host,
           std::function<void(const std::string& message)> expired);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// 0 switches it off.
  void set_timeout_seconds(double seconds);
  /// Ends the thread; no call is watched any more.
  void stop();

 private:
  void serve();
  std::string message(const FlightRecorder::Call& call, double waited) const;

  int rank_, ranks_;
  std::string host_;
  std::function<void(const std::string&)> expired_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

/// The limit of every wait in this process, as set by its watchdog; 0: no limit.
double communication_timeout_seconds();

}  // namespace lockstep
