// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The one loop: steps of a trainer, and hooks around them. Everything else (checkpoints, summaries,
// evaluation, early stopping, progress) is a hook. A hook gets a HookContext; stop_control.h says how the
// loop ends.
//
// Errors. An error of a hook travels with the exchange of the step and ends the run on all ranks. After a
// TransientError all ranks go back to the last checkpoint and continue from there, at most max_recoveries
// times. begin is not called again in a recovery. Verdict::rollback does the same, and the run goes on after
// the samples of the step: the step number goes back, the cursor does not. A checkpoint of this position is
// written at once, so that a later job continues likewise.
//
// All ranks make the same calls in the same order, on one thread each.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/coordinator.h"
#include "session/hook.h"
#include "session/hook_context.h"
#include "session/hook_list.h"

namespace lockstep {

class Gradients;

class MonitoredSession {
 public:
  struct Options {
    std::string run_dir;
    int max_recoveries = 0;
    int max_setbacks = 10;             ///< Setbacks
    double recovery_wait_seconds = 1;  ///< before the first recovery; doubled for each further one
    double stop_grace_seconds = 120;   ///< how long services may take to end
  };
  /// Puts variables, slots, hook state and the trainer's position where a new attempt begins: from a
  /// checkpoint, or as initialised. Returns the step of that checkpoint; -1: none. All ranks. Usually
  /// SessionManager::create().
  using Restore = std::function<std::int64_t(HookContext&)>;

  MonitoredSession(const SessionParts& parts, Options options, Restore restore);
  ~MonitoredSession();

  /// All ranks add the same hooks in the same order. Throws Error(config) if a name is taken.
  void add(std::unique_ptr<Hook> hook);
  /// Calls begin of all hooks, restores, and calls after_create_session. All ranks; once.
  void start();
  /// Steps until a stop is agreed, then end of all hooks. All ranks.
  void run();
  /// One step with its hooks. All ranks. False: a stop is agreed.
  bool run_step();
  /// What comes before the first step: an interruption of the start, calls that an earlier job deferred.
  /// run_step() does it, too. All ranks. False: a stop is agreed.
  bool begin_loop();
  /// The first half of a step: its hooks before_run and before_update, and the gradients, which the program
  /// may change alike on all ranks. All ranks; begin_loop() was true, and no stop is agreed.
  Gradients& compute_gradients();
  /// The second half. The step is not updated where a hook has said so, and the run goes back where a hook or
  /// an error asks for it: then a change of the gradients has no effect. All ranks. False: a stop is agreed.
  bool apply_gradients();
  /// The loop has ended: end of all hooks. All ranks; after the last step.
  void finish();

  /// A stop is agreed. The same on all ranks.
  bool should_stop() const { return context_.should_stop(); }
  std::int64_t global_step() const { return context_.global_step(); }
  /// Why it stopped: StopControl.
  const InterruptionRequest& interruption() const { return context_.interruption(); }
  const std::string& final_reason() const { return context_.stop_.final_reason(); }
  /// Why it stopped, in words; after finish() the same on all ranks. Empty: no hook gave a reason.
  const std::string& reason() const { return context_.stop_.reason(); }
  /// What its hooks get.
  HookContext& context() { return context_; }

 private:
  friend class Supervisor;  // whose program computes the steps

  /// Called before a step. All ranks. False: a stop is agreed.
  bool begin_step();
  /// Called after a step that was computed elsewhere, or several, of which `result` is the last: no hook's
  /// before_update is called. All ranks. False: a stop is agreed.
  bool end_step(const StepResult& result);
  /// This rank ends the session on all, with the exchange; called after begin_step(), before the step.
  void fail(const Error& error, std::exception_ptr what);
  /// The last exchange brought an error.
  bool error_agreed() const { return context_.stop_.agreement().severity == StopControl::Severity::error; }

  /// A step between its two halves.
  struct Half {
    StepResult result;
    StopControl::Agreement agreement;
    Verdict verdict = Verdict::update;
    bool failed = false;  ///< a rank has an error, which apply_step() follows
  };
  void compute_step(bool shows_gradients);
  void apply_step();

  /// `go_on`: the run goes back, and on from there.
  void create(std::optional<Cursor> go_on = {});
  void interrupt_start();
  bool follow_errors(const StopControl::Agreement& agreement);
  void run_deferred();
  void check_services();
  void send_values();
  void throw_error();
  void recover();
  void roll_back(const StepResult& result);

  Options options_;
  Restore restore_;
  HookContext context_;
  HookList hooks_;
  bool started_ = false, begun_ = false, finished_ = false;
  Half half_;
  Coordinator coordinator_;  // last: its threads end before what they use
};

}  // namespace lockstep
