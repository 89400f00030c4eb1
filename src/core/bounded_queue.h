// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A bounded first-in-first-out queue between threads.
//
//   - push() waits for room and pop() waits for an element. Both have a time limit, after which they throw an
//     Error that names the queue and the condition waited for.
//   - close(): no more elements will be pushed. pop() still delivers the queued elements and then throws
//     EndOfInput.
//   - cancel(): the work is stopped. Queued elements are dropped, and every current and later wait throws
//     Cancelled.
//
// Any number of threads may push and pop. The constructor allocates all slots; later allocations come only
// from the elements themselves.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/deadline.h"
#include "core/end_of_input.h"
#include "core/error.h"

namespace lockstep {

/// The part of a queue that is independent of its element type, for code that neither pushes nor pops.
class QueueControl {
 public:
  virtual ~QueueControl() = default;
  virtual const std::string& name() const = 0;
  virtual std::size_t capacity() const = 0;
  /// The current number of elements.
  virtual std::size_t size() const = 0;
  /// Ends the queue permanently. close() is for producers that are done: a push() that still waits for room
  /// throws Cancelled, and its element is lost. Both functions may be called more than once.
  virtual void close() = 0;
  virtual void cancel() = 0;
};

template <typename T>
class BoundedQueue final : public QueueControl {
 public:
  /// `name` appears in messages. `capacity` >= 1.
  BoundedQueue(std::string name, std::size_t capacity) : name_(std::move(name)), slots_(capacity) {
    LOCKSTEP_REQUIRE(capacity >= 1, ErrorKind::config, "queue '{}': its capacity must be at least 1", name_);
  }

  /// Throws Cancelled if the queue is closed or cancelled, and Error(communication) after the time limit.
  void push(T value, double limit_seconds) {
    std::unique_lock lock(mutex_);
    if (!room_.wait_until(lock, deadline_after(limit_seconds),
                          [this] { return closed_ || size_ < slots_.size(); }))
      throw Error(ErrorKind::communication,
                  fmt::format("waited {:g} s for room in queue '{}', which holds {} of {} elements",
                              limit_seconds, name_, size_, slots_.size()));
    if (closed_) throw Cancelled(fmt::format("pushing to queue '{}'", name_));
    slots_[(first_ + size_) % slots_.size()].emplace(std::move(value));
    ++size_;
    lock.unlock();
    elements_.notify_one();
  }

  /// Throws EndOfInput if the queue is closed and empty, Cancelled if it is cancelled, and
  /// Error(communication) after the time limit.
  T pop(double limit_seconds) {
    std::unique_lock lock(mutex_);
    if (!elements_.wait_until(lock, deadline_after(limit_seconds), [this] { return closed_ || size_ > 0; }))
      throw Error(ErrorKind::communication,
                  fmt::format("waited {:g} s for an element of queue '{}', which is empty and not closed",
                              limit_seconds, name_));
    return take(lock);
  }

  const std::string& name() const override { return name_; }
  std::size_t capacity() const override { return slots_.size(); }
  std::size_t size() const override {
    const std::lock_guard lock(mutex_);
    return size_;
  }

  void close() override { end(false); }
  void cancel() override { end(true); }

 private:
  T take(std::unique_lock<std::mutex>& lock) {
    if (cancelled_) throw Cancelled(fmt::format("popping from queue '{}'", name_));
    if (size_ == 0) throw EndOfInput(fmt::format("queue '{}'", name_));
    std::optional<T>& slot = slots_[first_];
    T value = std::move(*slot);
    slot.reset();
    first_ = (first_ + 1) % slots_.size();
    --size_;
    lock.unlock();
    room_.notify_one();
    return value;
  }

  void end(bool drop) {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      cancelled_ = cancelled_ || drop;
      if (drop) {
        for (std::optional<T>& slot : slots_) slot.reset();
        size_ = 0;
      }
    }
    room_.notify_all();
    elements_.notify_all();
  }

  const std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable room_, elements_;
  std::vector<std::optional<T>> slots_;  // a ring buffer
  std::size_t first_ = 0, size_ = 0;
  bool closed_ = false, cancelled_ = false;
};

}  // namespace lockstep
