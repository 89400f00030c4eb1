// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to EventWriter: the events that wait for the thread that writes them.
//
// The queue is bounded by bytes, and never blocks: what does not fit is dropped and counted. Pictures and
// other large values may fill three quarters of it, so that numbers and the records of the run's life (start,
// stop, checkpoints) still fit when large values come faster than the disk takes them. Bytes count until
// they are written.
//
// A number is copied with its tag into one block of memory that is used again and again: it allocates
// nothing in a steady state. Not thread-safe: EventWriter locks.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/event_reader.h"
#include "io/summary_value.h"

namespace lockstep {

struct SessionNote {
  SessionStatus status = SessionStatus::none;
  std::string checkpoint_path, message;
};
struct GraphNote {
  std::string graph_def;
};
struct RunMetadataNote {
  std::string tag, run_metadata;
};

struct QueuedEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::variant<std::vector<SummaryValue>, SessionNote, GraphNote, RunMetadataNote> what;
};

class EventQueue {
 public:
  /// Events in the order in which they came.
  class Batch {
   public:
    bool empty() const { return numbers_.empty(); }
    std::size_t bytes() const { return bytes_; }
    /// Forgets the events, and keeps the memory of the numbers.
    void clear();
    /// Calls number(step, wall_time, tag, value) and event(QueuedEvent&) for each event. Once.
    template <typename Number, typename Event>
    void each(Number&& number, Event&& event);

   private:
    friend class EventQueue;
    struct Head {
      double wall_time;
      std::int64_t step;
      float value;
      std::uint32_t tag_bytes;  ///< kIsEvent: the next one of `events_`
    };
    static constexpr std::uint32_t kIsEvent = 0xFFFFFFFF;
    void append(const Head& head, std::string_view tag);

    std::vector<char> numbers_;
    std::vector<QueuedEvent> events_;
    std::size_t bytes_ = 0;
  };

  explicit EventQueue(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// False: dropped.
  bool push(std::string_view tag, std::int64_t step, double wall_time, float value);
  /// The values that fit; false if some were dropped.
  bool push(QueuedEvent&& event);
  bool empty() const { return waiting_.empty(); }
  /// Bytes that wait, without those that take() has given out.
  std::size_t waiting_bytes() const { return waiting_.bytes(); }
  /// Exchanges what waits for `empty`, an empty batch. Its bytes count until done().
  void take(Batch& empty) { std::swap(waiting_, empty); }
  void done(const Batch& batch) { bytes_ -= batch.bytes(); }
  /// Values and records that did not fit.
  std::int64_t dropped() const { return dropped_; }
  void drop_all();

 private:
  bool fits(std::size_t bytes, bool large);

  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::int64_t dropped_ = 0;
  Batch waiting_;
};

template <typename Number, typename Event>
void EventQueue::Batch::each(Number&& number, Event&& event) {
  std::size_t next_event = 0;
  for (std::size_t at = 0; at < numbers_.size();) {
    Head head;
    std::memcpy(&head, numbers_.data() + at, sizeof head);
    at += sizeof head;
    if (head.tag_bytes == kIsEvent) {
      event(events_[next_event++]);
      continue;
    }
    number(head.step, head.wall_time, std::string_view(numbers_.data() + at, head.tag_bytes), head.value);
    at += head.tag_bytes;
  }
}

}  // namespace lockstep
