// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The coordinator: how the threads of one process stop together, and how none of their errors gets lost.
//
// Threads beside the training loop (timed services, queue runners, a writer, the user's own) are started
// here. Each asks should_stop() as often as it likes; whoever is done or fails asks all to stop; the owner
// joins. No communication: what ranks agree upon is the session's.
//
//   - The first error wins and join() rethrows it, also when it comes after a stop without an error. Later
//     ones are logged when they come and kept in later_errors().
//   - EndOfInput and Cancelled (core/end_of_input.h) stop without being an error.
//   - What escapes a thread becomes a ThreadError, which says the thread's name.
//
// All functions may be called by any thread, except those marked "owner". The destructor stops and joins as
// join() does, but never throws: it logs an error that nobody took. If a thread still does not end it says
// which and ends the process, for the thread may be using what is about to be destroyed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace lockstep {

/// An error that left a named thread. Kind, text, place and advice are the original's.
class ThreadError : public Error {
 public:
  ThreadError(const std::string& thread, const Error& description, std::exception_ptr original);
  const std::string& thread() const { return thread_; }
  std::exception_ptr original() const { return original_; }

 private:
  std::string thread_;
  std::exception_ptr original_;
};

class Coordinator {
 public:
  static constexpr double kGraceSeconds = 120;

  /// `grace_seconds`: how long the destructor waits for threads, unless a join() has done so.
  explicit Coordinator(double grace_seconds = kGraceSeconds) : grace_seconds_(grace_seconds) {}
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Asks all to stop: without an error (null, EndOfInput, Cancelled), or because of one.
  void request_stop(std::exception_ptr error = nullptr);
  /// One atomic load.
  bool should_stop() const noexcept { return stop_.load(std::memory_order_acquire); }
  /// True when a stop was requested, at once or within so many seconds.
  bool wait_for_stop(double limit_seconds) const;
  bool wait_for_stop_until(std::chrono::steady_clock::time_point until) const;
  /// Becomes true with the request: std::stop_callback wakes what waits elsewhere. Its callbacks run in the
  /// thread that requests the stop and must be short.
  std::stop_token stop_token() const;

  /// Runs `body`; an exception stops all and goes no further. True if there was none.
  template <typename Body>
  bool stop_on_exception(Body&& body) {
    try {
      std::forward<Body>(body)();
      return true;
    } catch (...) {
      request_stop(std::current_exception());
      return false;
    }
  }

  /// Starts a thread that the coordinator owns. `body` ends soon after a stop was requested. Debuggers and
  /// traces show the first 15 characters of the name.
  void start_thread(std::string name, std::function<void()> body);
  /// Takes over a thread that was started elsewhere. It sees to its own exceptions (stop_on_exception).
  void register_thread(std::string name, std::thread thread);
  /// Threads that have not ended.
  std::vector<std::string> running_threads() const;
  /// True when all threads have ended, at once or within so many seconds. Requests nothing.
  bool wait_for_threads(double limit_seconds) const;

  /// Owner. Requests a stop if nobody has, and waits until all threads have ended. Then rethrows the first
  /// error, once. Throws Error(bug) naming the threads that did not end in `grace_seconds`; if there is an
  /// error to rethrow, that is logged instead. Such threads stay registered.
  void join(double grace_seconds = kGraceSeconds);
  /// Rethrows the first error, if there is one that was not rethrown yet.
  void rethrow_error();
  /// Real errors behind the first one, in the order in which they came.
  std::vector<std::exception_ptr> later_errors() const;
  /// Owner, after join(): threads may be started again. Logs an error that nobody took.
  void clear_stop();

 private:
  struct Thread {
    std::string name;
    std::thread thread;
    bool ended = false;
  };
  void run(Thread& self, std::function<void()> body);
  void reap();
  std::vector<std::string> running_locked() const;

  const double grace_seconds_;
  mutable std::mutex mutex_;
  mutable std::condition_variable stopped_, ended_;
  std::atomic<bool> stop_{false};
  std::stop_source source_;
  std::list<Thread> threads_;
  std::exception_ptr first_error_;
  std::vector<std::exception_ptr> later_errors_;
  bool had_error_ = false, grace_spent_ = false;
  int exit_code_ = 1;
};

/// "what()" of any exception.
std::string text_of(const std::exception_ptr& error);

}  // namespace lockstep
