// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The watchdog: a thread that ends the run when one communication call stays open for longer than the limit.
//
// Its one message says which rank waited where, in which call and in which phase of the program, what it did
// before, and where the other ranks are: the watchdogs of the ranks answer one another's questions even while
// the ranks' main threads hang, so a rank that is late is named ("is in no communication call for 300 s"),
// and one that does not answer is dead or stopped. When several ranks time out, the lowest one speaks.
//
// A rank that answers, and is busy in a phase that may take long (set_long_phase: saving, evaluating,
// reading), is waited for ten times as long. One that does not answer never is. Where the watchdogs cannot
// talk (no MPI_THREAD_MULTIPLE) nobody knows, and ten times the limit holds for every call. Where they could
// talk until the network failed, the limit is as ever.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/flight_recorder.h"

namespace lockstep {

/// Where a rank is and what it did before; sent as bytes between ranks.
struct RankStatus {
  struct PastCall {
    std::uint64_t number = 0;  ///< 1 is the process's first call
    double seconds_ago = 0;    ///< since its end
    std::array<char, 40> name{};
  };
  static constexpr int kPastCalls = 6;

  std::int32_t in_call = 0;
  std::int32_t may_take_long = 0;  ///< its phase
  double seconds = 0;              ///< in the call, or since the last one ended
  std::array<char, 56> call{};
  std::array<char, 64> phase{}, host{};
  std::int32_t num_past = 0;
  std::array<PastCall, kPastCalls> past{};  ///< oldest first
};

/// How the watchdogs talk, on a message space of their own and from their own thread.
class WatchdogPeers {
 public:
  virtual ~WatchdogPeers() = default;
  /// Answers the questions that have come in. Never waits.
  virtual void answer(const RankStatus& mine) = 0;
  /// Asks all other ranks and waits for at most `seconds`; empty where no answer came. `mine` answers others
  /// meanwhile.
  virtual std::vector<std::optional<RankStatus>> ask_all(const RankStatus& mine, double seconds) = 0;
};

struct WatchdogIdentity {
  int rank = 0, ranks = 1;
  std::string host;
  std::vector<std::string> hosts = {};  ///< of all ranks, for those that do not answer; may be empty
  /// How long the launcher may take to notice a lost host by itself; 0: too long to wait for it.
  double launcher_seconds = 0;
};

/// No rank of some other host answers.
bool is_host_lost(const WatchdogIdentity& identity, const std::vector<std::optional<RankStatus>>& others);

/// The whole message, with all that is known: `others` has an entry per rank (the own one is ignored), or is
/// empty.
std::string watchdog_message(const WatchdogIdentity& identity, const FlightRecorder::Call& call,
                             double waited_seconds, const std::vector<std::optional<RankStatus>>& others);

class Watchdog {
 public:
  using Expired = std::function<void(const std::string& message, bool host_is_lost)>;
  /// How much longer a phase that may take long is waited for.
  static constexpr double kLongPhaseFactor = 10;

  /// `expired(message, host_is_lost)` is called once, from the watchdog's thread; it usually prints and
  /// aborts. `peers` may be null.
  Watchdog(double timeout_seconds, WatchdogIdentity identity, std::unique_ptr<WatchdogPeers> peers,
           Expired expired);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// 0 switches it off.
  void set_timeout_seconds(double seconds);
  /// Ends the thread; no call is watched any more.
  void stop();

 private:
  void serve();
  bool look(std::unique_lock<std::mutex>& lock);
  RankStatus status() const;
  bool is_excused(const std::vector<std::optional<RankStatus>>& others, double limit) const;
  bool a_lower_rank_speaks(const std::vector<std::optional<RankStatus>>& others, double limit) const;

  WatchdogIdentity identity_;
  std::unique_ptr<WatchdogPeers> peers_;
  Expired expired_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::string peers_failed_;  // why the watchdogs cannot talk any more
  FlightRecorder::Clock::time_point ask_again_{};
  std::thread thread_;
};

/// The limit of every wait in this process, as set by its watchdog; 0: no limit.
double communication_timeout_seconds();

}  // namespace lockstep
