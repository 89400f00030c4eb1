// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/coordinator.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/deadline.h"
#include "core/end_of_input.h"
#include "core/last_resort.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/start_thread.h"

namespace lockstep {

namespace {

struct Verdict {
  bool is_error = false;
  int exit_code = 1;
};

Verdict judge(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const EndOfInput&) {
    return {};
  } catch (const Cancelled&) {
    return {};
  } catch (const Error& e) {
    return {true, exit_code(e.kind())};
  } catch (...) {
    return {true, 1};
  }
}

std::exception_ptr with_name(const std::string& thread, const std::exception_ptr& error) {
  if (!judge(error).is_error) return error;
  const auto named = [&](const Error& description) {
    return std::make_exception_ptr(ThreadError(thread, description, error));
  };
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return named(e);
  } catch (const std::bad_alloc&) {
    return named(Error(ErrorKind::device, "out of memory"));
  } catch (...) {
    return named(Error(ErrorKind::bug, text_of(error)));
  }
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  return text;
}

/// In a process without a second thread.
std::vector<Coordinator*> with_turns;

std::string straggler_text(const std::vector<std::string>& names, double seconds) {
  return fmt::format("{} not ended within {:g} s of the stop request: {}",
                     names.size() == 1 ? "a thread has" : "threads have", seconds, list_of(names));
}

}  // namespace

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return message_of(e).text;
  } catch (...) {
    return "an exception of unknown type";
  }
}

ThreadError::ThreadError(const std::string& thread, const Error& description, std::exception_ptr original)
    : Error(error_of_lines(description.kind(), description.what_happened(),
                           description.where().empty()
                               ? fmt::format("thread '{}'", thread)
                               : fmt::format("thread '{}', {}", thread, description.where()),
                           description.advice())),
      thread_(thread),
      original_(std::move(original)) {}

Coordinator::~Coordinator() {
  end_turns();
  std::vector<std::string> running;
  double waited = 0;
  try {
    request_stop();
    waited = grace_spent_ ? 0 : grace_seconds_;
    wait_for_threads(waited);
    running = running_threads();
    reap();
    if (first_error_)
      log_error("this error was not rethrown by join(): {}", MessageLines{text_of(first_error_)});
    if (running.empty()) return;
    const std::string message = straggler_text(running, waited);
    ask_last_resorts(exit_code_, message);
    log_error("{}; the process ends here", message);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: while destroying a coordinator: %s\n", error.what());
  }
  // Joining might never return, and returning would free memory that the threads still use.
  std::fflush(stdout);
  std::_Exit(exit_code_);
}

void Coordinator::request_stop(std::exception_ptr error) {
  const Verdict verdict = judge(error);
  std::stop_source source(std::nostopstate);
  bool later = false;
  {
    const std::lock_guard lock(mutex_);
    later = verdict.is_error && had_error_;
    if (later) {
      later_errors_.push_back(error);
    } else if (verdict.is_error) {
      had_error_ = true;
      exit_code_ = verdict.exit_code;
      first_error_ = error;
    }
    stop_.store(true, std::memory_order_release);
    source = source_;
  }
  stopped_.notify_all();
  source.request_stop();  // runs callbacks, so not under the lock
  if (later) log_error("another error after the first one: {}", MessageLines{text_of(error)});
}

bool Coordinator::wait_for_stop(double limit_seconds) const {
  return should_stop() || wait_for_stop_until(deadline_after(limit_seconds));
}

bool Coordinator::wait_for_stop_until(std::chrono::steady_clock::time_point until) const {
  std::unique_lock lock(mutex_);
  return stopped_.wait_until(lock, until, [this] { return should_stop(); });
}

std::stop_token Coordinator::stop_token() const {
  const std::lock_guard lock(mutex_);
  return source_.get_token();
}

void Coordinator::start_thread(std::string name, std::function<void()> body) {
  reap();
  const std::lock_guard lock(mutex_);
  Thread& self = threads_.emplace_back();
  self.name = std::move(name);
  try {
    self.thread = lockstep::start_thread(
        fmt::format("thread '{}'", self.name),
        [this, &self, work = std::move(body)]() mutable { run(self, std::move(work)); });
  } catch (...) {
    threads_.pop_back();
    throw;
  }
}

void Coordinator::add_turn(std::string name, std::function<void()> turn) {
  if (turns_.empty()) with_turns.push_back(this);
  turns_.emplace_back(std::move(name), std::move(turn));
}

void Coordinator::end_turns() {
  std::erase(with_turns, this);
  turns_.clear();
}

void Coordinator::take_turns() {
  for (Coordinator* const coordinator : with_turns)
    for (const auto& [name, turn] : coordinator->turns_) {
      if (coordinator->should_stop()) break;
      try {
        turn();
      } catch (...) {
        coordinator->request_stop(with_name(name, std::current_exception()));
      }
    }
}

void Coordinator::run(Thread& self, std::function<void()> body) {
  (void)pthread_setname_np(pthread_self(), self.name.substr(0, 15).c_str());
  try {
    body();
  } catch (...) {
    request_stop(with_name(self.name, std::current_exception()));
  }
  body = nullptr;  // release what it holds before the thread counts as ended
  const std::lock_guard lock(mutex_);
  self.ended = true;
  ended_.notify_all();  // under the lock: the owner may destroy the coordinator as soon as it sees the flag
}

void Coordinator::register_thread(std::string name, std::thread thread) {
  LOCKSTEP_CHECK(thread.joinable(), "thread '{}' is not running", name);
  // std::thread has no join with a time limit. A second thread joins it, and its `ended` flag can be waited
  // for.
  auto shared = std::make_shared<std::thread>(std::move(thread));
  start_thread(std::move(name), [shared] { shared->join(); });
}

std::vector<std::string> Coordinator::running_locked() const {
  std::vector<std::string> names;
  for (const Thread& thread : threads_)
    if (!thread.ended) names.push_back(thread.name);
  return names;
}

std::vector<std::string> Coordinator::running_threads() const {
  const std::lock_guard lock(mutex_);
  return running_locked();
}

bool Coordinator::wait_for_threads(double limit_seconds) const {
  const auto until = deadline_after(limit_seconds);
  std::unique_lock lock(mutex_);
  return ended_.wait_until(lock, until, [this] {
    return std::all_of(threads_.begin(), threads_.end(), [](const Thread& thread) { return thread.ended; });
  });
}

// Joins the threads that have ended; this does not block.
void Coordinator::reap() {
  std::list<Thread> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto thread = threads_.begin(); thread != threads_.end();) {
      const auto next = std::next(thread);
      if (thread->ended) gone.splice(gone.end(), threads_, thread);
      thread = next;
    }
  }
  for (Thread& thread : gone) thread.thread.join();
}

void Coordinator::join(double grace_seconds) {
  request_stop();
  end_turns();
  {
    const std::lock_guard lock(mutex_);
    for (const Thread& thread : threads_)
      LOCKSTEP_CHECK(thread.thread.get_id() != std::this_thread::get_id(), "thread '{}' joins itself",
                     thread.name);
  }
  wait_for_threads(grace_seconds);
  const std::vector<std::string> running = running_threads();
  reap();
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = std::exchange(first_error_, nullptr);
    grace_spent_ = !running.empty();
  }
  if (!running.empty()) {
    const std::string text = straggler_text(running, grace_seconds);
    if (!error) throw Error(ErrorKind::bug, text, "", "Poll should_stop() more often in these threads.");
    log_error("{}", text);
  }
  if (error) std::rethrow_exception(error);
}

void Coordinator::rethrow_error() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = std::exchange(first_error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

std::vector<std::exception_ptr> Coordinator::later_errors() const {
  const std::lock_guard lock(mutex_);
  return later_errors_;
}

void Coordinator::clear_stop() {
  reap();
  const std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(threads_.empty(), "clear_stop() while threads run: {}", list_of(running_locked()));
  if (first_error_)
    log_error("cleared an error that was not rethrown: {}", MessageLines{text_of(first_error_)});
  first_error_ = nullptr;
  later_errors_.clear();
  had_error_ = grace_spent_ = false;
  exit_code_ = 1;
  source_ = std::stop_source();
  stop_.store(false, std::memory_order_release);
}

}  // namespace lockstep
