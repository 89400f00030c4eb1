// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A training loop of one's own with what a long run needs around it: the newest checkpoint or initial values
// at the start, checkpoints, summaries and the step counter by time, services of one's own, signals and the
// files STOP and SAVE, one clear end.
//
//   Supervisor supervisor(setup.supervised(), {.session = {.run_dir = "runs/own"}, .last_step = 1000});
//   return supervisor.managed_session([&] {
//     while (!supervisor.should_stop()) trainer.minimize();
//   });
//
// All ranks call the same methods in the same order. should_stop() stands between two steps: there the ranks
// follow what the exchange of the last step has brought (a stop, an error, a checkpoint that is due by the
// clock of rank 0), and it fills in what the next one takes along. It sends no message itself, so nothing is
// late by more than a step. The loop may compute a step as it likes (minimize(), or compute_gradients() and
// apply_gradients()), or several between two calls.
//
// Errors. What the body throws on one rank, between steps, reaches the others with the exchange of the step
// that they compute; the rank that failed computes it too. Then all ranks throw the same SharedError. With
// optimizer.shard, and for errors of communication or the device, the rank ends the run by itself, as
// run_on_ranks() says.
//
// It is a MonitoredSession whose steps the program computes. There are no hooks of one's own here, as
// before_update could not be called; a program with hooks uses MonitoredSession.
//
// Why news travel with the next step: TensorFlow's services are threads that save by the clock, but here a
// checkpoint needs all ranks after the same step, and a barrier or flag in each should_stop() would be a
// message per step, which would not help a rank that fails after it. A rank whose body ends cannot know
// whether the others have ended, too, or are in the next step: so it computes that step with them, without
// updating. "I have left" from all ranks ends the run without the step; from some it is an error. A body that
// returns by its own condition costs one step that does not count; last_step and request_stop() cost nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/function_ref.h"
#include "core/timed_service.h"
#include "io/run_lock.h"
#include "session/job_recorder.h"
#include "session/monitored_session.h"
#include "session/saver.h"
#include "session/session_manager.h"

namespace lockstep {

/// The run that is supervised. All of it outlives the supervisor (api/session_setup.h makes it).
struct SupervisedRun {
  SessionValues values;
  int shards = 1;
  bool accuracy = true, part_accuracy = true;  ///< SessionParts
  /// The lock of the run directory, null on ranks other than the chief; none: it is not watched. The same on
  /// all.
  std::optional<const RunLock*> lock = {};
  std::string config_text = {};                ///< for checkpoints
  std::string computed_on = {};                ///< likewise: CheckpointHeader::computed_on
  std::shared_ptr<const KeptFiles> kept = {};  ///< likewise: CheckpointHeader::kept
  CheckpointCopyWays copy_ways = {};
  double sync_seconds = 5;  ///< how often ranks synchronise while they wait for the last checkpoint
  /// The record of the job, on all ranks, for `lockstep status`; null: no status file.
  JobRecorder* recorder = nullptr;
};

struct SupervisorOptions {
  SessionManagerOptions session = {};
  SessionManager::PrepareOptions start = {};  ///< whether and how long to wait for a checkpoint
  std::optional<std::int64_t> last_step = {};
  double save_model_seconds = 600;      ///< 0: only at the end, and on request
  double save_summaries_seconds = 120;  ///< of summaries and the step counter; 0: neither
  SaverOptions saver = {};
  int max_recoveries = 0;           ///< after a TransientError of a service
  double stop_grace_seconds = 120;  ///< how long services may take to end
};

class Supervisor {
 public:
  using Options = SupervisorOptions;

  Supervisor(const SupervisedRun& run, Options options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// A service on this rank: `function` every `seconds` while the session lasts (timed_service.h). It must
  /// not communicate. Before the session or in it.
  void loop(double seconds, std::function<void()> function, TimedServiceOptions options = {});

  /// start(), body, stop(). Returns the exit code: 0; 75 or 130 after an interruption, which saves. All
  /// ranks; once. A body that returns before should_stop() says true costs the computation of one step more.
  int managed_session(FunctionRef<void()> body);
  /// The session has its values, and the services run. All ranks. False: a signal ended the wait for a
  /// checkpoint, and there is no session.
  bool start();
  /// Whether the loop should end. Called once per step, before it; the same on all ranks.
  bool should_stop();
  /// Any rank: all ranks stop one step later.
  void request_stop(const std::string& reason);
  /// Any rank: a checkpoint after the step whose exchange brings the request.
  void request_save();
  /// Ends the services, writes the last checkpoint, and records the end of the job. All ranks; after the last
  /// step. Returns the exit code, as managed_session() does.
  int stop();

  std::int64_t global_step() const;
  /// The step of the checkpoint that the session began with; -1: none.
  std::int64_t restored_step() const;
  /// Why the session ended early, if it did. The same on all ranks.
  const InterruptionRequest& interruption() const;
  /// Numbers of the program's own, on rank 0.
  RunReports& reports() { return reports_; }
  /// The threads that run next to the loop.
  Coordinator& coordinator();

 private:
  class Services;
  int run(FunctionRef<void()> body);
  int record_end(const InterruptionRequest& interruption);
  void record_error(int code, const std::string& why);
  void add_hooks(const SupervisedRun& run);
  void leave(const Error* error);
  void compute_for_others(const Error* error);
  StepResult last_result() const;

  const SessionValues values_;
  JobRecorder* const recorder_;
  const RunLock* const lock_;  ///< null: not watched, or not the chief
  const Options options_;
  SessionManager manager_;
  Saver saver_;
  RunReports reports_;
  InterruptionRequest interruption_;  ///< while there is no session
  bool in_step_ = false;              ///< begin_step() was called
  std::int64_t step_ = 0;             ///< before it
  Cursor cursor_;
  Services* services_ = nullptr;  ///< the session's
  std::unique_ptr<MonitoredSession> session_;
};

}  // namespace lockstep
