// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockstep {

namespace {

template <std::size_t N>
void copy_text(std::array<char, N>& to, const char* from) noexcept {
  const std::size_t length = std::min(std::strlen(from), N - 1);
  std::memcpy(to.data(), from, length);
  to[length] = '\0';
}

double seconds(FlightRecorder::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

FlightRecorder& flight_recorder() {
  static FlightRecorder recorder;
  return recorder;
}

FlightRecorder::Ticket FlightRecorder::begin(const char* what, std::size_t bytes, int peer) noexcept {
  const std::lock_guard lock(mutex_);
  for (int ticket = 0; ticket < kOpen; ++ticket) {
    Call& call = open_[static_cast<std::size_t>(ticket)];
    if (call.open) continue;
    copy_text(call.name, what);
    call.bytes = bytes;
    call.peer = peer;
    call.number = ++begun_;
    call.begin = Clock::now();
    call.open = true;
    return ticket;
  }
  return -1;
}

void FlightRecorder::end(Ticket ticket) noexcept {
  if (ticket < 0) return;
  const std::lock_guard lock(mutex_);
  Call& call = open_[static_cast<std::size_t>(ticket)];
  call.end = last_end_ = Clock::now();
  call.open = false;
  kept_[ended_++ % kKept] = call;
}

void FlightRecorder::set_phase(const char* phase, bool may_take_long) noexcept {
  const std::lock_guard lock(mutex_);
  copy_text(phase_, phase);
  phase_may_take_long_ = may_take_long;
}

bool FlightRecorder::phase_may_take_long() const {
  const std::lock_guard lock(mutex_);
  return phase_may_take_long_;
}

std::array<char, 64> FlightRecorder::phase_text() const {
  const std::lock_guard lock(mutex_);
  return phase_;
}

std::string FlightRecorder::phase() const {
  const std::lock_guard lock(mutex_);
  return phase_.data();
}

double FlightRecorder::seconds_since_last_call() const {
  const std::lock_guard lock(mutex_);
  return seconds(Clock::now() - last_end_);
}

std::optional<FlightRecorder::Call> FlightRecorder::oldest_open() const {
  const std::lock_guard lock(mutex_);
  const Call* oldest = nullptr;
  for (const Call& call : open_)
    if (call.open && (oldest == nullptr || call.begin < oldest->begin)) oldest = &call;
  return oldest == nullptr ? std::nullopt : std::optional<Call>(*oldest);
}

std::string FlightRecorder::last_calls(int count) const {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  std::string text;
  const std::uint64_t available = std::min<std::uint64_t>(ended_, kKept);
  const std::uint64_t shown =
      std::min<std::uint64_t>(available, static_cast<std::uint64_t>(std::max(count, 0)));
  for (std::uint64_t i = ended_ - shown; i < ended_; ++i) {
    const Call& call = kept_[i % kKept];
    text +=
        fmt::format("  #{} '{}' {} bytes, took {:.6f} s, ended {:.3f} s ago\n", call.number, call.name.data(),
                    call.bytes, seconds(call.end - call.begin), seconds(now - call.end));
  }
  return text;
}

int FlightRecorder::last_calls(std::span<Call> calls) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t count = std::min({ended_, std::uint64_t{kKept}, std::uint64_t{calls.size()}});
  for (std::uint64_t i = 0; i < count; ++i) calls[i] = kept_[(ended_ - count + i) % kKept];
  return static_cast<int>(count);
}

std::uint64_t FlightRecorder::calls_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace lockstep
