// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What hooks get in each of their methods: where the run is, and what they may ask for. One per session,
// which owns it. Everything here is for the loop's thread.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/coordinator.h"
#include "core/function_ref.h"
#include "session/deferred_calls.h"
#include "session/hook_state.h"
#include "session/metric_board.h"
#include "session/rank_times.h"
#include "session/rank_values.h"
#include "session/save_request.h"
#include "session/session_parts.h"
#include "session/setbacks.h"
#include "session/stop_control.h"
#include "session/transient_error.h"
#include "train/feed.h"

namespace lockstep {

class HookContext {
 public:
  HookContext(const HookContext&) = delete;
  HookContext& operator=(const HookContext&) = delete;

  // The run.

  const SessionParts& parts() const { return parts_; }
  Trainer& trainer() { return parts_.trainer; }
  const VariableStore& variables() const { return parts_.variables; }
  Communicator& control() { return parts_.control; }
  RunReports& reports() { return parts_.reports; }
  /// A function that gives numbers of the hook for each record of training, in addition to those of the step.
  /// It is added in begin; the writer calls it on the chief, in after_run. Names must outlive the call.
  using SummaryProducer = std::function<void(std::vector<RunReports::Value>& values)>;
  void add_summary(SummaryProducer producer) { summaries_.push_back(std::move(producer)); }
  const std::vector<SummaryProducer>& summaries() const { return summaries_; }
  /// The numbers of the last step, by name (train/step_metrics.h).
  const StepMetrics& step_metrics() const;
  /// What evaluations found.
  MetricBoard& eval_metrics() { return eval_metrics_; }
  const std::string& run_dir() const { return run_dir_; }
  bool is_chief() const { return is_chief_; }
  /// Steps done.
  std::int64_t global_step() const;
  /// The last step of this attempt, or the one whose calls an earlier session deferred. Before both: step 0.
  const StepResult& last_step() const { return last_step_; }
  /// The place of the next batch.
  Cursor cursor() const;
  /// end() is being called: no step follows.
  bool ending() const { return ending_; }
  /// How often the session has been created again after a TransientError.
  int recoveries() const { return recoveries_; }
  /// True in after_create_session if the run has gone back to a checkpoint, and goes on after the samples of
  /// a step that is not repeated.
  bool rolled_back() const { return rolled_back_; }
  /// How often that happened in this session.
  int rollbacks() const { return rollbacks_; }
  /// The session is created again.
  bool begins_again() const { return recoveries_ > 0 || rollbacks_ > 0; }
  /// Steps without an update, in a row, and their limit.
  Setbacks& setbacks() { return setbacks_; }
  /// Declares, in begin, that the hook may say skip or rollback. The first such hook keeps the counts in
  /// checkpoints.
  void keep_setbacks(const Hook& hook, bool may_roll_back);
  /// A hook may say rollback: checkpoints are written at their steps, never later.
  bool may_roll_back() const { return may_roll_back_; }
  /// The step of the checkpoint that the present attempt began with; -1: none.
  std::int64_t restored_step() const { return restored_step_; }
  /// A text for messages on the chief: "the checkpoint of step 120 is intact", or that there is none. It is
  /// the newest one that is known to be on the disk.
  std::string checkpoint_text() const;
  /// The checkpoint of this step is on the disk.
  void note_saved(std::int64_t step) { saved_step_ = std::max(saved_step_, step); }

  // Stopping (stop_control.h).

  void request_stop(const std::string& reason) { stop_.request_stop(reason); }
  void stop_now(const std::string& reason = {}) { stop_.stop_now(reason); }
  void stop_for_good(const std::string& reason) { stop_.stop_for_good(reason); }
  void finish_now(const std::string& reason) { stop_.finish_now(reason); }
  bool should_stop() const { return stop_.should_stop(); }
  InterruptionSources& interruptions() { return stop_.interruptions(); }
  const InterruptionRequest& interruption() const { return stop_.interruption(); }

  // Deferring calls to the next job (deferred_calls.h).

  /// All ranks alike, in after_run or end: this hook ended early because of the interruption. The hooks after
  /// it are not called in this after_run. A session that continues from the checkpoint calls this hook and
  /// them first.
  void defer(const Hook& hook, const InterruptionRequest& interruption);
  /// Calls are deferred, by this session or by the one that wrote the checkpoint.
  bool has_deferred() const { return deferred_.any(); }
  /// This session has run the calls that an earlier one deferred.
  bool ran_deferred() const { return ran_deferred_; }

  // Checkpoints.

  /// Any rank: the checkpoint saver saves after the step whose exchange brings the request.
  void request_save() { save_.request(); }
  SaveRequest& save_request() { return save_; }
  /// Declares, in begin, numbers of the hook that checkpoints keep, and the settings without which they mean
  /// nothing: {} if they are valid under all (HookState::declare()).
  void declare_state(const Hook& hook, const std::string& key, std::span<double> values,
                     StateSettings settings, std::size_t lasting = 0) {
    state_.declare(hook, key, values, std::move(settings), lasting);
  }
  /// The settings that a result of evaluations depends on: for state that compares such results.
  StateSettings settings_of(std::string_view metric) const;
  /// The state of all hooks for a checkpoint: HookState::tensors().
  std::span<const CheckpointTensor> state(bool with_deferred = false) const {
    return state_.tensors(with_deferred);
  }
  const std::vector<StatePiece>& state_pieces() const { return state_.pieces(); }
  /// On the chief, from after_create_session on: the run continues, and these values were begun anew because
  /// their settings changed.
  bool has_begun_anew(const Hook& hook, const std::string& key) const;
  /// For what restores the state.
  void set_outcomes(std::vector<PieceOutcome> outcomes) { outcomes_ = std::move(outcomes); }

  // Other ranks, the step's samples, threads.

  /// Values that each rank sends with every step: declared in begin (rank_values.h).
  RankValues& rank_values() { return rank_values_; }
  /// What each rank spent the last step on.
  const RankTimes& rank_times() const { return rank_times_; }
  /// Runs something that may fail on this rank alone, for hooks that communicate, and keeps its error for the
  /// next exchange.
  void keep_errors(const Hook& hook, FunctionRef<void()> body);
  /// Changes the samples of this step, in before_run, on all ranks alike. Two hooks that feed are an error.
  void feed(const Hook& hook, Feed feed);
  /// The threads next to the loop: a hook starts its services here, in after_create_session. An error in one
  /// ends the session on all ranks, like an error of a hook. Services end before the session does.
  Coordinator& coordinator() { return coordinator_; }

 private:
  friend class MonitoredSession;
  HookContext(const SessionParts& parts, std::string run_dir, Coordinator& coordinator);
  void end_feed();

  SessionParts parts_;
  const bool is_chief_;
  std::string run_dir_;
  Coordinator& coordinator_;
  MetricBoard eval_metrics_;
  RankValues rank_values_;
  RankTimes rank_times_;
  std::vector<SummaryProducer> summaries_;
  StopControl stop_;
  SaveRequest save_;
  DeferredCalls deferred_;
  HookState state_;
  std::vector<PieceOutcome> outcomes_;
  StepResult last_step_;
  const Hook* feeding_ = nullptr;
  Setbacks setbacks_;
  bool keeps_setbacks_ = false, rolled_back_ = false, may_roll_back_ = false;
  int recoveries_ = 0, rollbacks_ = 0;
  std::int64_t restored_step_ = -1, saved_step_ = -1;
  bool ending_ = false, ran_deferred_ = false;
};

}  // namespace lockstep
