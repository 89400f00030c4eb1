// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread that works when it is woken: the one behind EventWriter and MetricsLog, so that no step waits for
// a disk. Its work must not throw.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

namespace lockstep {

class WriterThread {
 public:
  /// `every_seconds` > 0: works this often without being woken too. If no thread can be started, that is a
  /// warning, and nothing works: the owner's flush() must do it.
  WriterThread(std::string_view what, std::function<void()> work, double every_seconds = 0);
  /// Ends the thread after the work that it has begun.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  /// Any thread. Several calls before the work begins are one.
  void wake();

 private:
  void run();

  const std::function<void()> work_;
  const double every_seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false, ends_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lockstep
