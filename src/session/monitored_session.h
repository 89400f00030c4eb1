// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The one loop: steps of a trainer, and hooks around them. Everything else (checkpoints, summaries,
// evaluation, early stopping, progress) is a hook.
//
// What only some ranks notice (a signal, a clock, an error) goes into words that travel with the step's one
// exchange, so that all ranks act after the same step:
//
//   before_run of step n      request_stop() on any rank      all ranks stop after step n
//   after_run of step n       request_stop() on any rank      all ranks stop after step n + 1
//   after_run of step n       stop_now() on all ranks alike   all ranks stop after step n
//
// An interruption (interruption.h) is a stop before the run's end, to go on later: its sources are asked just
// before each exchange.
//
// A hook's error travels in the same way. TransientError means that trying again may help: all ranks go back
// to the last checkpoint and on from there, without calling begin again, at most max_recoveries times.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/coordinator.h"
#include "core/function_ref.h"
#include "io/checkpoint.h"
#include "session/hook.h"
#include "session/interruption.h"
#include "session/left_off.h"
#include "session/metric_board.h"
#include "session/run_reports.h"

namespace lockstep {

/// An error that may go away: a file system or a service that did not answer.
class TransientError : public Error {
 public:
  using Error::Error;
};

/// What a session works with; all of it outlives the session.
struct SessionParts {
  Communicator& control;  ///< for agreements, and for hooks that communicate
  Trainer& trainer;
  VariableStore& variables;
  const Optimizer& optimizer;
  RunReports& reports;
  int shards = 1;
  std::uint64_t seed = 0;
  bool accuracy = true;       ///< reported beside the loss
  bool part_accuracy = true;  ///< and each head's, where there are several
  bool reports_part(std::string_view part) const { return part_accuracy || !is_accuracy(part); }
};

class MonitoredSession {
 public:
  struct Options {
    std::string run_dir;
    int max_recoveries = 0;
    double recovery_wait_seconds = 1;  ///< before each recovery, doubled each time
    double stop_grace_seconds = 120;   ///< that services get to end
    /// Called when nothing was restored, behind initialisation and warm start, before the first step:
    /// pretrained values (VariableStore::mark_set). The same on all ranks; must not communicate.
    std::function<void(VariableStore&)> init_fn;
  };
  /// Puts variables, slots, hook state and the trainer's position where a new attempt begins: from a
  /// checkpoint, or as initialised. All ranks.
  using Restore = std::function<void(MonitoredSession&)>;

  MonitoredSession(SessionParts parts, Options options, Restore restore);
  ~MonitoredSession();

  /// All ranks add the same hooks in the same order. Throws Error(config) if a name is taken.
  void add(std::unique_ptr<Hook> hook);
  /// Calls begin of all hooks, restores, and calls after_create_session. All ranks; once.
  void start();
  /// Steps until a stop is agreed, then end of all hooks. All ranks.
  void run();
  /// One step with its hooks. All ranks. False: a stop is agreed.
  bool run_step();
  /// end of all hooks. All ranks; after the last run_step().
  void finish();

  // For hooks.

  const SessionParts& parts() const { return parts_; }
  Trainer& trainer() { return parts_.trainer; }
  const VariableStore& variables() const { return parts_.variables; }
  Communicator& control() { return parts_.control; }
  RunReports& reports() { return parts_.reports; }
  MetricBoard& metrics() { return metrics_; }
  const std::string& run_dir() const { return options_.run_dir; }
  bool is_chief() const { return parts_.control.rank() == 0; }
  /// Steps done.
  std::int64_t global_step() const { return parts_.trainer.global_step(); }

  /// Any rank, any time: agreed with the next exchange. The first reason is logged.
  void request_stop(const std::string& reason);
  /// All ranks alike, in the same method of the same step: no step follows. The reason, if there is one, is
  /// logged.
  void stop_now(const std::string& reason = {});
  /// The same, and the run is finished by that, whatever train.steps says: started again, it ends at once.
  void stop_for_good(const std::string& reason);
  /// Why; empty: it was not.
  const std::string& final_reason() const { return final_reason_; }
  bool should_stop() const { return stop_; }
  /// Who may interrupt the session: add sources in begin, on any rank.
  InterruptionSources& interruptions() { return interruptions_; }
  /// Why the session stopped; `finished` as long as it has not been interrupted. The same on all ranks.
  const InterruptionRequest& interruption() const { return interruption_; }
  /// All ranks alike, in after_run or end: this hook gave up what it was doing because of the interruption.
  /// The hooks behind it are not called in this after_run; a session that goes on from the checkpoint
  /// calls this hook and them first.
  void leave_off(const Hook& hook, const InterruptionRequest& interruption);
  /// Something is left off, by this session or by the one that wrote the checkpoint.
  bool left_off() const { return left_off_.method() != LeftOff::Method::none; }
  /// What an earlier session had left off was made up for in this one.
  bool made_up() const { return made_up_; }
  /// end() is being called: no step follows.
  bool ending() const { return ending_; }
  /// For hooks that communicate: runs something that may fail on this rank alone, and keeps its error for the
  /// next exchange.
  void keep_errors(const Hook& hook, FunctionRef<void()> body);
  /// Any rank: the checkpoint saver saves after the step whose exchange brings it.
  void request_save() { save_requested_ = true; }
  /// The same on all ranks: a save was requested, and no saver has taken it yet.
  bool save_requested() const { return save_agreed_; }
  /// The same. Taking it clears it.
  bool take_save_request() { return std::exchange(save_agreed_, false); }

  /// In begin: `count` doubles that each rank sends with every exchange. The handle is the same on all ranks.
  struct Words {
    int first = 0, count = 0;
  };
  Words declare_words(int count);
  /// This rank's; what stands there when the step's exchange takes place is sent.
  std::span<double> words(Words words);
  /// In before_update and after_run: what a rank sent with this step's exchange.
  std::span<const double> words_of(Words words, int rank) const;

  /// In begin: numbers that belong to the run, kept in checkpoints as state/hooks/<hook>/<key>. They must be
  /// the same on all ranks, and live as long as the hook. Hooks of all ranks only.
  void declare_state(const Hook& hook, const std::string& key, std::span<double> values);
  /// For a checkpoint. `left_off`: also where the session left off, even if it did not: to restore it.
  std::span<const CheckpointTensor> state(bool left_off = false) const;

  /// In before_run, all ranks alike: changes the samples of this step. Two hooks that feed are an error.
  void feed(const Hook& hook, Feed feed);

  /// Threads beside the loop: a hook starts its services here, in after_create_session. An error in one ends
  /// the session on all ranks, like a hook's; services end before the session does.
  Coordinator& coordinator() { return coordinator_; }

  /// How often this session has been created anew after a TransientError.
  int recoveries() const { return recoveries_; }
  /// The step of the checkpoint that the present attempt began with; -1: none.
  std::int64_t restored_step() const { return restored_step_; }
  /// For Restore.
  void set_restored(std::int64_t step) { restored_step_ = step; }

 private:
  enum Level { none = 0, stop = 1, transient = 2, failed = 3 };

  using Call = FunctionRef<void(Hook&)>;
  bool calls(const Hook& hook) const { return is_chief() || hook.scope() == HookScope::all_ranks; }
  void call_agreed(Hook& hook, bool communicates, const char* method, Call call);
  void call_in_step(const char* method, Call call, std::size_t first = 0);
  void create();
  void fill_words();
  Level agreed_level() const;
  InterruptionRequest agreed_interruption() const;
  void interrupt(const InterruptionRequest& request);
  void agree_interruption();
  void make_up();
  void throw_pending();
  void keep_error(const Error& error, std::exception_ptr what);
  void look_at_services();
  void agreed(const char* what, FunctionRef<void()> body);
  void check_ready() const;
  void recover();

  SessionParts parts_;
  Options options_;
  Restore restore_;
  std::vector<std::unique_ptr<Hook>> hooks_;
  MetricBoard metrics_;
  std::vector<CheckpointTensor> state_;
  std::vector<double> initial_state_;
  int num_words_ = 0;
  bool started_ = false, begun_ = false, finished_ = false, ending_ = false;
  InterruptionSources interruptions_;
  InterruptionRequest interruption_;
  LeftOff left_off_;
  std::string final_reason_;
  StepResult last_result_;
  bool made_up_ = false, leaving_off_ = false;
  bool stop_ = false, stop_requested_ = false, save_requested_ = false, save_agreed_ = false;
  std::exception_ptr pending_;
  Level pending_level_ = none;
  const Hook* feeding_ = nullptr;
  int recoveries_ = 0;
  std::int64_t restored_step_ = -1;
  Coordinator coordinator_;  // last: its threads end before what they use
};

}  // namespace lockstep
