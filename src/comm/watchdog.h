// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The watchdog: a thread that ends the run when a communication call exceeds the time limit.
//
// Its message states which rank waited on which host, in which call and phase, the calls before it, and the
// state of the other ranks. The watchdogs answer each other's questions even while the main threads hang. So
// the message names a late rank ("is in no communication call for 300 s"); a rank that does not answer is
// dead or stopped. If several ranks time out, the lowest one prints the message.
//
// A rank that answers and is in a long phase (set_long_phase: saving, evaluating, reading) gets ten times the
// limit. An unresponsive rank gets no extension: if any rank does not answer, the normal limit applies.
// Without MPI_THREAD_MULTIPLE the watchdogs cannot exchange messages, and every call gets ten times the
// limit. A rank in a PatientWait waits without a limit while all ranks answer. If the exchange works at first
// and fails later, the normal limit applies.
//
// No wait is without a limit, not even a watchdog's: when a host's link is cut, a message to it never
// completes, and a watchdog that waited for an answer, or a process that waited for MPI_Abort, would hang
// with the run. So a run ends within comm.timeout_seconds and 10 s on every host, even without a launcher
// (docs/hosts.md says what the launcher adds).
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

/// The state of a rank and its last calls; ranks exchange it as bytes.
struct RankStatus {
  struct PastCall {
    std::uint64_t number = 0;  ///< 1 is the process's first call
    double seconds_ago = 0;    ///< since its end
    std::array<char, 40> name{};
  };
  static constexpr int kPastCalls = 6;

  std::int32_t in_call = 0;
  std::int32_t may_take_long = 0;  ///< 1 if its phase may take long
  double seconds = 0;              ///< in the call, or after the end of the last one
  std::array<char, 56> call{};
  std::array<char, 64> phase{}, host{};
  std::int32_t num_past = 0;
  std::array<PastCall, kPastCalls> past{};  ///< oldest first
};

/// Messages between the watchdogs, in a separate message space and from the watchdogs' threads.
class WatchdogPeers {
 public:
  virtual ~WatchdogPeers() = default;
  /// Answers all questions that have arrived. Never waits.
  virtual void answer(const RankStatus& mine) = 0;
  /// Asks all other ranks and waits for their answers, at most `seconds`. Returns an entry per rank, empty if
  /// it did not answer. Answers the questions of others meanwhile, with `mine`.
  virtual std::vector<std::optional<RankStatus>> ask_all(const RankStatus& mine, double seconds) = 0;
};

struct WatchdogIdentity {
  int rank = 0, ranks = 1;
  std::string host;
  std::vector<std::string> hosts = {};  ///< of all ranks, to name unresponsive ones; may be empty
  /// The time that the launcher may need to notice a lost host; 0: do not wait for it.
  double launcher_seconds = 0;
};

/// True if there is another host from which no rank answers.
bool is_host_lost(const WatchdogIdentity& identity, const std::vector<std::optional<RankStatus>>& others);

/// The text of the message; its first line names the ranks that the others wait for. `others` has an entry
/// per rank (this rank's is ignored), or is empty.
std::string watchdog_message(const WatchdogIdentity& identity, const FlightRecorder::Call& call,
                             double waited_seconds, const std::vector<std::optional<RankStatus>>& others);

class Watchdog {
 public:
  using Expired = std::function<void(const std::string& message, bool host_is_lost)>;
  /// The factor of the limit for phases that may take long.
  static constexpr double kLongPhaseFactor = 10;

  /// `expired(message, host_is_lost)` is called once, from the watchdog's thread; it usually prints the
  /// message and aborts. `peers` may be null.
  Watchdog(double timeout_seconds, WatchdogIdentity identity, std::unique_ptr<WatchdogPeers> peers,
           Expired expired);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// 0 turns the watchdog off.
  void set_timeout_seconds(double seconds);
  /// Ends the thread. Calls are not watched any more.
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
  std::string peers_failed_;  // the error that ended the exchange between the watchdogs
  FlightRecorder::Clock::time_point ask_again_{};
  std::thread thread_;
};

/// While an object of this class lives, calls of this process may take any time, as long as all ranks answer:
/// it waits for ranks that do other work. One thread at a time.
class PatientWait {
 public:
  PatientWait();
  ~PatientWait();
  PatientWait(const PatientWait&) = delete;
  PatientWait& operator=(const PatientWait&) = delete;
};

/// The time limit of every wait in this process, as set by its watchdog; 0: none.
double communication_timeout_seconds();

}  // namespace lockstep
