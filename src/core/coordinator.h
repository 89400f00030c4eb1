// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stops the threads of one process together and keeps their errors.
//
// The coordinator owns all threads except the training loop's: timed services, queue runners, a writer, the
// user's own. Each thread polls should_stop(). A thread that is done or fails requests a stop for all; the
// owner joins them. The coordinator does not communicate: agreement between ranks is the session's task.
//
//   - The first error wins, even if it follows a stop without an error, and join() rethrows it. Later errors
//     are logged at once and kept in later_errors().
//   - EndOfInput and Cancelled (core/end_of_input.h) stop the threads without being errors.
//   - An exception that leaves a thread becomes a ThreadError, which carries the thread's name.
//
// Any thread may call any function except those marked "owner". The destructor stops and joins like join(),
// but it never throws: it logs an error that no join() has rethrown. If a thread does not end in time, the
// destructor asks the last resort (last_resort.h), names the thread and ends the process, because that thread
// may use memory that is about to be freed.
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

/// An error that left a named thread, with the kind, text, place and advice of the original.
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

  /// `grace_seconds`: how long the destructor waits for threads. It does not wait again after a join() that
  /// has timed out.
  explicit Coordinator(double grace_seconds = kGraceSeconds) : grace_seconds_(grace_seconds) {}
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Requests a stop of all threads: without an error (null, EndOfInput, Cancelled) or because of `error`.
  void request_stop(std::exception_ptr error = nullptr);
  /// One atomic load.
  bool should_stop() const noexcept { return stop_.load(std::memory_order_acquire); }
  /// Waits for a stop request, at most until the time limit. Returns whether a stop is requested.
  bool wait_for_stop(double limit_seconds) const;
  bool wait_for_stop_until(std::chrono::steady_clock::time_point until) const;
  /// The token that a stop request sets, so that std::stop_callback can wake other waits. The callbacks run
  /// in the thread that requests the stop and must be short.
  std::stop_token stop_token() const;

  /// Runs `body` and turns an exception into a stop request. Returns true if `body` did not throw.
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

  /// Starts a thread that the coordinator owns. `body` must return soon after a stop request. Debuggers and
  /// traces show the first 15 characters of `name`.
  void start_thread(std::string name, std::function<void()> body);
  /// For a program that may have no second thread (thread_ban.h): `turn` is called by each take_turns() until
  /// join(). Its exception is a stop request, like one that leaves a thread.
  void add_turn(std::string name, std::function<void()> turn);
  /// Calls the turns of all coordinators of the process, now and then, such as once per step.
  static void take_turns();
  /// Takes over a running thread, which must handle its own exceptions (stop_on_exception).
  void register_thread(std::string name, std::thread thread);
  /// The names of the threads that have not ended.
  std::vector<std::string> running_threads() const;
  /// Waits until all threads have ended, at most `limit_seconds`. Returns whether they have. Does not request
  /// a stop.
  bool wait_for_threads(double limit_seconds) const;

  /// Owner. Requests a stop if there is none yet, waits until all threads have ended, and rethrows the first
  /// error unless it has been rethrown before. Throws Error(bug) that names the threads that have not ended
  /// within `grace_seconds`; if there is an error to rethrow, it logs those names instead. Such threads stay
  /// registered.
  void join(double grace_seconds = kGraceSeconds);
  /// Rethrows the first error, if there is one that has not been rethrown.
  void rethrow_error();
  /// The errors after the first one, in the order of their arrival. EndOfInput and Cancelled are not among
  /// them.
  std::vector<std::exception_ptr> later_errors() const;
  /// Owner, after join(): resets the coordinator so that threads may be started again. Logs an error that has
  /// not been rethrown.
  void clear_stop();

 private:
  struct Thread {
    std::string name;
    std::thread thread;
    bool ended = false;
  };
  void run(Thread& self, std::function<void()> body);
  void reap();
  void end_turns();
  std::vector<std::string> running_locked() const;

  const double grace_seconds_;
  mutable std::mutex mutex_;
  mutable std::condition_variable stopped_, ended_;
  std::atomic<bool> stop_{false};
  std::stop_source source_;
  std::list<Thread> threads_;
  std::vector<std::pair<std::string, std::function<void()>>> turns_;
  std::exception_ptr first_error_;
  std::vector<std::exception_ptr> later_errors_;
  bool had_error_ = false, grace_spent_ = false;
  int exit_code_ = 1;
};

/// The text of any exception: what(), or a description of one that has none.
std::string text_of(const std::exception_ptr& error);

}  // namespace lockstep
