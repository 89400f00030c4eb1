// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gives a session its values, once per attempt, in this order:
//
//   1. the newest intact checkpoint of the run directory; without one the initial values, then the warm
//      start, then init_fn
//   2. local_init: what checkpoints do not keep
//   3. ready: every variable has values, and what the program asks for is there
//
// Rank 0 reads files, and all ranks get the values. MonitoredSession and Supervisor stand on it; alone it is
// for a program that wants checkpoints in a loop of its own.
//
// All ranks call the same methods in the same order. An error of a function on one rank is a SharedError of
// all.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "session/interruption.h"
#include "session/run_state.h"
#include "session/warm_start.h"

namespace lockstep {

class Communicator;
class DistributedState;
class HookContext;
class Optimizer;
class Saver;
class Trainer;
class VariableStore;

/// What a checkpoint puts values into. All of it outlives the manager.
struct SessionValues {
  Communicator& control;
  Trainer& trainer;
  VariableStore& variables;
  Optimizer& optimizer;
  DistributedState* distributed = nullptr;  ///< null: each rank has all of the state
  std::uint64_t seed = 0;                   ///< of initial values, and of the run that may be continued
};

struct SessionManagerOptions {
  std::string run_dir;
  std::optional<WarmStartOptions> warm_start = {};
  /// Sets variables where no checkpoint was restored (VariableStore::mark_set). It must do the same on all
  /// ranks; it must not communicate, nor must local_init and ready.
  std::function<void(VariableStore&)> init_fn = {};
  /// Called on every rank each time that values were set, after a restore, too.
  std::function<void(VariableStore&)> local_init = {};
  /// What this rank still waits for, in words; empty: it is ready.
  std::function<std::string()> ready = {};
  /// The configuration may be another one than that of the checkpoint: RestoredState::accepts_changes.
  bool accepts_changes = false;
  double recovery_wait_seconds = 30;  ///< between two looks for a checkpoint
};

class SessionManager {
 public:
  using Options = SessionManagerOptions;

  struct PrepareOptions {
    std::string checkpoint = {};       ///< a file; empty: the newest intact one of the run directory
    bool wait_for_checkpoint = false;  ///< of another job: no initial values
    double max_wait_seconds = 7200;    ///< then an Error(checkpoint)
  };
  struct Prepared {
    std::int64_t restored_step = -1;  ///< of the checkpoint; -1: initial values
    /// A signal ended the wait; nothing was set.
    InterruptionRequest interruption = {};
  };

  SessionManager(const SessionValues& values, Options options);

  /// A session for a run that begins or continues. Throws Error(config) if it is not ready.
  Prepared prepare(const PrepareOptions& options);
  Prepared prepare() { return prepare(PrepareOptions{}); }
  /// Restores the newest checkpoint. False: there is none, or the session is not ready with it.
  bool recover();
  /// recover(), every recovery_wait_seconds until it succeeds: for a job that uses what another one trains.
  /// Throws Error(checkpoint) if the next try would be later than max_wait_seconds.
  Prepared wait_for_session(double max_wait_seconds = 7200);

  /// An attempt of a MonitoredSession: with the state of its hooks. In a later attempt of the session it
  /// first waits for what `saver` writes. Returns the step of the checkpoint; -1: none.
  std::int64_t create(HookContext& hooks, Saver& saver);
  /// The checkpoint that create() takes in the session's first attempt; otherwise it looks itself.
  void set_first(FoundCheckpoint found) { first_ = std::move(found); }
  /// What the present attempt began with.
  const FoundCheckpoint& found() const { return found_; }

  /// Waits until there is a checkpoint, or a signal comes. Throws Error(checkpoint) after the limit.
  InterruptionRequest wait_for_checkpoint(double max_wait_seconds);

 private:
  std::vector<PieceOutcome> restore(std::span<const CheckpointTensor> hook_state,
                                    std::span<const StatePiece> pieces);
  void set_initial_values();
  void reset();
  void call_local_init();
  std::string missing() const;
  void require_ready();
  bool is_ready();
  template <typename Look>
  InterruptionRequest wait_until(double max_wait_seconds, const char* what, Look look);

  SessionValues values_;
  Options options_;
  std::optional<FoundCheckpoint> first_;
  FoundCheckpoint found_;
  bool reported_ = false;  ///< what became of the state: once in a job
  bool began_ = false;     ///< variables may have other values than the initial ones
};

}  // namespace lockstep
