// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An interruption is a stop before the end of the run, with the state saved. A signal, the end of the job's
// time or a file in the run directory causes it. Each rank asks its sources, and sends the most urgent
// request as one number with the exchange of the step. All ranks follow the largest number.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep {

class Communicator;

/// How a session ended. `finished`: nothing is left to do. `requeue`: saved, to continue in another job.
/// `user`: saved, a person asked for the stop.
enum class Interruption { finished = 0, requeue = 1, user = 2 };

/// The exit code of the program: 0; 75 (EX_TEMPFAIL, on which tools for Slurm queue the job again); 130 (the
/// code that shells report for INT).
int exit_code(Interruption interruption);

/// The reason: the number of a signal, or one of these.
enum class InterruptionReason {
  none = 0,
  time_limit = 101,
  stop_file = 102,
  lost_directory = 103,
  pause = 104  ///< the job was to end here (TrainingJob::pauses)
};

struct InterruptionRequest {
  Interruption kind = Interruption::finished;
  int reason = 0;  ///< a signal, or an InterruptionReason

  bool any() const { return kind != Interruption::finished; }
  /// The request as one number for the exchange, of which the largest of all ranks prevails. 0: no request.
  double code() const { return any() ? 1000.0 * static_cast<double>(kind) + reason : 0; }
  static InterruptionRequest from_code(double code);
};
/// A text for people: "signal USR1", "the time of the job is nearly over".
std::string interruption_text(const InterruptionRequest& request);

/// The request of the signals that this process has received.
InterruptionRequest signal_request();
/// The most urgent request of all ranks, where no exchange of a step carries it. All ranks.
InterruptionRequest agreed(Communicator& communicator, const InterruptionRequest& mine, const char* what);

/// The sources of a rank.
class InterruptionSources {
 public:
  /// Called before each step and between the batches of an evaluation. It must be cheap and must not
  /// communicate.
  using Source = std::function<InterruptionRequest()>;
  void add(Source source) { sources_.push_back(std::move(source)); }
  /// The most urgent request so far. A request is never withdrawn.
  const InterruptionRequest& look();

 private:
  std::vector<Source> sources_;
  InterruptionRequest found_;
};

}  // namespace lockstep
