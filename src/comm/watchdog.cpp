// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace lockstep {

namespace {
std::atomic<double> g_timeout_seconds{0};
constexpr int kCallsShown = 16;
}  // namespace

double communication_timeout_seconds() { return g_timeout_seconds.load(std::memory_order_relaxed); }

Watchdog::Watchdog(double timeout_seconds, int rank, int ranks, std::string host,
                   std::function<void(const std::string& message)> expired)
    : rank_(rank), ranks_(ranks), host_(std::move(host)), expired_(std::move(expired)) {
  g_timeout_seconds = timeout_seconds;
  thread_ = std::thread([this] { serve(); });
}

void Watchdog::set_timeout_seconds(double seconds) {
  g_timeout_seconds = seconds;
  wake_.notify_all();
}

void Watchdog::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::serve() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const double limit = communication_timeout_seconds();
    const double nap = limit > 0 ? std::clamp(limit / 8, 0.01, 1.0) : 1.0;
    wake_.wait_for(lock, std::chrono::duration<double>(nap));
    if (stop_ || limit <= 0) continue;
    const auto call = flight_recorder().oldest_open();
    if (!call) continue;
    const double waited = std::chrono::duration<double>(FlightRecorder::Clock::now() - call->begin).count();
    if (waited <= limit) continue;
    expired_(message(*call, waited));
    return;
  }
}

std::string Watchdog::message(const FlightRecorder::Call& call, double waited) const {
  const std::string phase = flight_recorder().phase();
  std::string text = fmt::format("lockstep: rank {} of {} on host {} has waited {:.0f} s in '{}'", rank_,
                                 ranks_, host_, waited, call.name.data());
  if (call.peer >= 0) text += fmt::format(" for rank {}", call.peer);
  if (!phase.empty()) text += fmt::format(" (phase '{}')", phase);
  text += "; the run ends here.\n";
  text += "  A rank that is late is elsewhere: in its input, in a checkpoint, dead or stopped.\n";
  text += fmt::format("  The last calls of rank {}, oldest first:\n{}", rank_,
                      flight_recorder().last_calls(kCallsShown));
  return text;
}

}  // namespace lockstep
