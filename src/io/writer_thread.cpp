// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/writer_thread.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "core/log.h"
#include "core/message_lines.h"
#include "core/start_thread.h"
#include "core/thread_ban.h"

namespace lockstep {

struct WriterThread::State {
  const std::function<void(Extent)> work;
  const Options options;
  std::mutex mutex;
  std::condition_variable changed, worked;
  bool woken = false, ends = false, ended = false;
  bool is_late = false;  ///< somebody has waited in vain for the present work
  Extent extent = Extent::written;
  std::uint64_t asked = 0, done = 0;

  void run() {
    std::unique_lock lock(mutex);
    const auto has_reason = [this] { return woken || ends; };
    for (;;) {
      if (options.every_seconds > 0)
        changed.wait_for(lock, std::chrono::duration<double>(options.every_seconds), has_reason);
      else
        changed.wait(lock, has_reason);
      if (ends) break;
      woken = false;
      const Extent to = std::exchange(extent, Extent::written);
      const std::uint64_t ticket = asked;
      lock.unlock();
      work(to);
      lock.lock();
      done = ticket;
      is_late = false;
      worked.notify_all();
    }
    ended = true;
    worked.notify_all();
  }

  /// Holds the lock.
  template <typename Condition>
  bool wait_for(std::unique_lock<std::mutex>& lock, Condition condition) {
    return worked.wait_for(lock, std::chrono::duration<double>(is_late ? 0 : options.patience_seconds),
                           condition);
  }
};

WriterThread::WriterThread(std::string_view what, std::function<void(Extent)> work, const Options& options)
    : state_(new State{.work = std::move(work), .options = options}) {
  if (ThreadBan::active()) return;  // wait() does the work
  try {
    thread_ = start_thread(what, [state = state_] { state->run(); });
  } catch (const Error& error) {
    log_warning("{}\n  What it would write waits for the next flush.", message_of(error));
  }
}

WriterThread::~WriterThread() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(state_->mutex);
  state_->ends = true;
  state_->changed.notify_one();
  const bool ended = state_->wait_for(lock, [this] { return state_->ended; });
  lock.unlock();
  if (ended)
    thread_.join();
  else
    thread_.detach();
}

void WriterThread::wake() {
  {
    const std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->woken, true)) return;
  }
  state_->changed.notify_one();
}

bool WriterThread::wait(Extent extent, const std::string& file) {
  if (!thread_.joinable()) {
    state_->work(extent);
    return true;
  }
  std::unique_lock lock(state_->mutex);
  const std::uint64_t ticket = ++state_->asked;
  state_->extent = std::max(state_->extent, extent);
  state_->woken = true;
  state_->changed.notify_one();
  if (state_->wait_for(lock, [&] { return state_->done >= ticket; })) return true;
  const bool first = !std::exchange(state_->is_late, true);
  lock.unlock();
  if (first)
    log_warning(
        "{}: the disk has not answered for {:g} s; nothing waits for it any longer, and what is not "
        "written when it answers again or the run ends is lost",
        file, state_->options.patience_seconds);
  return false;
}

}  // namespace lockstep
