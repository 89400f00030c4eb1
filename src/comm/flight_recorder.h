// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The flight recorder: the communication calls that are in progress and the last 64 that have ended, with
// names, sizes and times. There is one per process. Communicators write it, the watchdog reads it.
// Thread-safe; recording does not allocate.
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
  static constexpr int kKept = 64;  ///< ended calls that are kept
  static constexpr int kOpen = 16;  ///< calls open at one time (one per thread); others are not recorded
  using Ticket = int;

  struct Call {
    std::array<char, 56> name{};
    std::size_t bytes = 0;
    int peer = -1;  ///< the rank waited for; -1: none or several
    std::uint64_t number = 0;
    Clock::time_point begin{}, end{};
    bool open = false;
  };

  /// Records the begin of a call. Names longer than 55 characters are cut.
  Ticket begin(const char* what, std::size_t bytes, int peer) noexcept;
  void end(Ticket ticket) noexcept;

  /// Sets the phase of the program ("step 17", "reading data"), for messages. Cheap. `may_take_long`: other
  /// ranks wait longer for a rank that is in this phase and answers (watchdog.h).
  void set_phase(const char* phase, bool may_take_long = false) noexcept;
  std::string phase() const;
  /// phase() as a zero-terminated array, without allocation.
  std::array<char, 64> phase_text() const;
  bool phase_may_take_long() const;
  /// Seconds since the last call ended, or since the recorder was created.
  double seconds_since_last_call() const;
  /// The call that has been open longest.
  std::optional<Call> oldest_open() const;
  /// The last `count` ended calls as text, newest last, one per line: " #17 'allgather' 128 bytes, took
  /// 0.001000 s, ended 12.345 s ago".
  std::string last_calls(int count) const;
  /// Copies the last ended calls to `calls`, as many as fit, newest last. Returns their number.
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

/// Records a call that is open during the lifetime of this object.
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

/// Sets the phase of this process's flight recorder, such as "step 17". Does not allocate.
inline void set_phase(const char* phase) noexcept { flight_recorder().set_phase(phase); }
/// Sets a phase that may take many times longer than a step: reading, restoring, evaluating, saving.
inline void set_long_phase(const char* phase) noexcept { flight_recorder().set_phase(phase, true); }

}  // namespace lockstep
