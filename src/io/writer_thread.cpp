// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/writer_thread.h"

#include <chrono>
#include <utility>

#include "core/log.h"
#include "core/start_thread.h"

namespace lockstep {

WriterThread::WriterThread(std::string_view what, std::function<void()> work, double every_seconds)
    : work_(std::move(work)), every_seconds_(every_seconds) {
  try {
    thread_ = start_thread(what, [this] { run(); });
  } catch (const Error& error) {
    log_warning("{}\n  What it would write waits for the next flush.", error.what());
  }
}

WriterThread::~WriterThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void WriterThread::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(woken_, true)) return;
  }
  changed_.notify_one();
}

void WriterThread::run() {
  std::unique_lock lock(mutex_);
  const auto has_reason = [this] { return woken_ || ends_; };
  for (;;) {
    if (every_seconds_ > 0)
      changed_.wait_for(lock, std::chrono::duration<double>(every_seconds_), has_reason);
    else
      changed_.wait(lock, has_reason);
    if (ends_) return;
    woken_ = false;
    lock.unlock();
    work_();
    lock.lock();
  }
}

}  // namespace lockstep
