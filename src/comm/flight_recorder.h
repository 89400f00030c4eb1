// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The flight recorder: the communication calls that are open now and the last 64 that ended, with their
// names, bytes and times. One per process; written by every Communicator, read by the watchdog. Thread-safe,
// never allocates while recording.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace lockstep {

class FlightRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kKept = 64;  ///< calls that have ended
  static constexpr int kOpen = 16;  ///< calls open at one time (one per thread); more are not recorded
  using Ticket = int;

  struct Call {
    std::array<char, 56> name{};
    std::size_t bytes = 0;
    int peer = -1;  ///< the rank that is waited for, where it is one
    std::uint64_t number = 0;
    Clock::time_point begin{}, end{};
    bool open = false;
  };

  /// Names longer than 55 characters are cut.
  Ticket begin(const char* what, std::size_t bytes, int peer) noexcept;
  void end(Ticket ticket) noexcept;

  /// Where the program is ("step 17", "reading data"), for messages. Cheap. `may_take_long`: others wait
  /// longer for a rank that is in this phase and answers (watchdog.h).
  void set_phase(const char* phase, bool may_take_long = false) noexcept;
  std::string phase() const;
  /// The same, ended by a zero, without allocation.
  std::array<char, 64> phase_text() const;
  bool phase_may_take_long() const;
  /// How long ago the last call ended (or the recorder was made).
  double seconds_since_last_call() const;
  /// The call that has been open longest.
  std::optional<Call> oldest_open() const;
  /// The last `count` calls, newest last, one per line: "  12.345 s ago  allgather 'x'  128 bytes  0.001 s".
  std::string last_calls(int count) const;
  /// The last calls that fit into `calls`, newest last; how many there are.
  int last_calls(std::span<Call> calls) const;
  std::uint64_t calls_ended() const;

 private:
  mutable std::mutex mutex_;
  std::array<Call, kOpen> open_;
  std::array<Call, kKept> kept_;
  std::uint64_t begun_ = 0, ended_ = 0;
  std::array<char, 64> phase_{};
  bool phase_may_take_long_ = false;
  Clock::time_point last_end_ = Clock::now();
};

FlightRecorder& flight_recorder();

/// A call that is open while this object lives.
class RecordedCall {
 public:
  RecordedCall(const char* what, std::size_t bytes, int peer = -1) noexcept
      : ticket_(flight_recorder().begin(what, bytes, peer)) {}
  ~RecordedCall() { flight_recorder().end(ticket_); }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

 private:
  FlightRecorder::Ticket ticket_;
};

/// flight_recorder().set_phase(phase): "step 17". No allocation.
inline void set_phase(const char* phase) noexcept { flight_recorder().set_phase(phase); }
/// A phase beside the steps, such as reading, restoring, evaluating, saving: it may take many times as long.
inline void set_long_phase(const char* phase) noexcept { flight_recorder().set_phase(phase, true); }

}  // namespace lockstep
