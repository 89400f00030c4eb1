// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Ends the loop of a session: requests, errors and interruptions of single ranks, and what all ranks agree
// on. What only some ranks notice travels with the exchange of a step, so that all ranks act after the same
// step:
//
//   before_run of step n      request_stop(), stop_for_good() on any rank    all ranks stop after step n
//   after_run of step n       request_stop(), stop_for_good() on any rank    all ranks stop after step n + 1
//   after_run of step n       stop_now(), finish_now() on all ranks alike    all ranks stop after step n
//
// Why the loop ended is exchanged once, after it (share_reasons()).
//
// An interruption (interruption.h) is a stop before the end of the run. Its sources are asked just before
// each exchange. An error is kept until the exchange. If several ranks send something, the most severe wins.
//
// The loop's thread owns it.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "core/error.h"
#include "session/interruption.h"
#include "session/rank_values.h"
#include "session/run_reports.h"

namespace lockstep {

class Communicator;

class StopControl {
 public:
  /// What a rank sends; the larger one prevails.
  enum class Severity { none = 0, stop = 1, transient_error = 2, error = 3 };
  /// What all ranks do after a step.
  struct Agreement {
    Severity severity = Severity::none;
    InterruptionRequest interruption;
  };

  StopControl(bool is_chief, RunReports& reports, RankValues& values);

  /// Any rank, any time: agreed with the next exchange. The first reason is logged.
  void request_stop(const std::string& reason);
  /// Stops like request_stop(), and the run is finished: a job that is started again ends at once, whatever
  /// train.steps says.
  void stop_for_good(const std::string& reason);
  /// All ranks alike, in the same method of the same step: no step follows. A reason that is not empty is
  /// logged.
  void stop_now(const std::string& reason = {});
  /// Stops like stop_now(), and the run is finished, as with stop_for_good().
  void finish_now(const std::string& reason);
  /// The hook that is being called: reasons name it. Empty: none.
  void set_caller(std::string_view hook) { caller_ = hook; }
  /// All ranks, when the loop has ended: each learns why. A reason of stop_for_good() or finish_now() comes
  /// before others, and that of a lower rank before that of a higher one.
  void share_reasons(Communicator& control);
  /// Why the loop ended, with the hook that asked for it; after share_reasons() the same on all ranks. Empty:
  /// nobody gave a reason.
  const std::string& reason() const { return reason_; }
  /// The same, if it was by stop_for_good() or finish_now(); else empty.
  const std::string& final_reason() const { return final_reason_; }
  /// No step follows. The same on all ranks.
  bool should_stop() const { return stop_; }

  /// What may interrupt the session. Hooks add sources in begin, on any rank.
  InterruptionSources& interruptions() { return interruptions_; }
  /// Why the session stopped; `finished` unless it was interrupted. The same on all ranks.
  const InterruptionRequest& interruption() const { return interruption_; }
  /// All ranks alike: stops with this interruption. The chief notes it with the number of steps done.
  void interrupt(const InterruptionRequest& request, std::int64_t global_step);

  /// Keeps this rank's error for the next exchange. A later one is logged and dropped.
  void keep_error(const Error& error, std::exception_ptr what, bool transient);
  /// Rethrows the kept error, if there is one.
  void rethrow_error() const;
  void clear_error();

  /// The loop, before the exchange. Asks the sources of interruptions.
  void send();
  /// The loop, after the exchange. The same on all ranks.
  Agreement agreement() const;
  /// The loop, after the step's last hook.
  void follow(const Agreement& agreement, std::int64_t global_step);

 private:
  std::string with_caller(const std::string& reason) const;

  const bool is_chief_;
  RunReports& reports_;
  RankValues& values_;
  RankValues::Slice severity_slice_, interruption_slice_;
  InterruptionSources interruptions_;
  InterruptionRequest interruption_;
  std::string_view caller_;
  std::string reason_, final_reason_;
  bool stop_ = false, stop_requested_ = false;
  std::exception_ptr error_;
  Severity error_severity_ = Severity::none;
};

}  // namespace lockstep
