// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A stop before the end of the run, with its state saved: by a signal, because the time of the job is over,
// by a file in the run directory. Each rank asks its sources; what it has found is one number that travels
// with the step's exchange, and the largest of all ranks is what all of them do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

/// How a session came to its end. `finished`: nothing is left to do. `requeue`: saved, wants to go on in
/// another job. `user`: saved, somebody wanted it to stop.
enum class Interruption { finished = 0, requeue = 1, user = 2 };

/// What the program exits with: 0, 75 (EX_TEMPFAIL, what tools for Slurm take for "queue me again"), 130 (as
/// shells say of INT).
int exit_code(Interruption interruption);

/// Why: a signal's number, or one of these.
enum class InterruptionReason { none = 0, time_limit = 101, stop_file = 102 };

struct InterruptionRequest {
  Interruption kind = Interruption::finished;
  int reason = 0;  ///< a signal, or an InterruptionReason

  bool any() const { return kind != Interruption::finished; }
  /// For the exchange: one number, of which the largest of all ranks prevails. 0: no request.
  double code() const { return any() ? 1000.0 * static_cast<double>(kind) + reason : 0; }
  static InterruptionRequest from_code(double code);
};
/// "signal USR1", "the time of the job is nearly over".
std::string interruption_text(const InterruptionRequest& request);

/// What the signals so far ask for.
InterruptionRequest signal_request();
/// All ranks, where there is no step whose exchange could carry it: the most urgent of all ranks.
InterruptionRequest agreed(Communicator& communicator, const InterruptionRequest& mine, const char* what);

/// Whom a rank asks.
class InterruptionSources {
 public:
  /// Called before each step and between the batches of an evaluation: must be cheap, and must not
  /// communicate.
  using Source = std::function<InterruptionRequest()>;
  void add(Source source) { sources_.push_back(std::move(source)); }
  /// The most urgent request so far; once made it stays.
  const InterruptionRequest& look();

 private:
  std::vector<Source> sources_;
  InterruptionRequest found_;
};

}  // namespace lockstep
