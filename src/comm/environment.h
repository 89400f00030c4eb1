// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Start and end of communication. There is one CommEnvironment per process, created first in main. All ranks
// call finalize() when all went well.
//
// Without a launcher (mpirun, srun) MPI is not initialised, and the group consists of this process.
// A group of ranks that does work of its own has an environment too (split()): world() are its ranks; time
// limits, the watchdog and the end belong to the environment of the run.
//
// The environment variables of launchers decide only whether MPI_Init is called; ranks and sizes come from
// MPI. On an error path, print the message and call abort(code), which ends all ranks; do not call
// finalize(). The destructor does not communicate, so that an exception can pass through it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/process_environment.h"

namespace lockstep {

class AdaptiveTimeout;
class Watchdog;

/// True if the environment shows that a launcher (mpirun, srun or similar) started this process.
bool started_by_launcher(GetEnv get_env);
/// This process's rank, as the launcher says before MPI is initialised; 0 if it does not.
int launcher_rank(GetEnv get_env);
/// launcher_rank() of this process's environment: a hint, for messages before MPI_Init only; the truth is
/// MPI_Comm_rank.
int launcher_rank_hint();
/// A warning if the launcher started another number of ranks than MPI reports ("Slurm gave 8 tasks, MPI sees
/// 1: start with srun --mpi=pmix or mpirun"); otherwise empty.
std::string start_warning(GetEnv get_env, int ranks);

struct CommOptions {
  /// The time limit of one communication call, after which the watchdog ends the run. 0 turns the watchdog
  /// off. Null: determined from the first steps (adaptive_timeout.h).
  std::optional<double> timeout_seconds;
  /// The time limit of the start: MPI_Init_thread and the first exchange of all ranks. 0: no limit.
  double start_timeout_seconds = 300;
};

class CommEnvironment {
 public:
  explicit CommEnvironment(CommOptions options = {});
  ~CommEnvironment();
  CommEnvironment(const CommEnvironment&) = delete;
  CommEnvironment& operator=(const CommEnvironment&) = delete;

  /// All ranks of the run.
  Communicator& world() { return *world_; }
  /// The host of every rank.
  const std::vector<std::string>& hosts() const { return hosts_; }
  bool uses_mpi() const { return uses_mpi_; }
  /// True if threads other than the main thread may communicate: MPI provides MPI_THREAD_MULTIPLE, or MPI is
  /// not used.
  bool thread_multiple() const { return thread_multiple_; }
  /// MPI's thread level: "multiple", "serialized", "funneled" or "single"; "none" without MPI.
  const char* thread_level() const { return thread_level_; }
  /// See lockstep::start_warning.
  const std::string& start_warning() const { return start_warning_; }

  /// All ranks of the run. The environment of the ranks that give the same `color`, in their order. This one
  /// outlives it.
  std::unique_ptr<CommEnvironment> split(int color);
  /// The ranks of the run on this host, in whatever groups they are.
  struct LocalRanks {
    int rank = 0, count = 1;  ///< rank: of this process among them
  };
  LocalRanks local_ranks();
  /// All ranks of the run. Waits until all are here, without a limit as long as all of them answer.
  void wait_for_all(const char* what);

  void set_timeout_seconds(double seconds);
  /// Determines the adaptive limit anew, for a model whose steps take other times.
  void restart_timeout();
  /// Reports the duration of a step to the adaptive limit. No effect if the limit is fixed. Main thread.
  void step_took(double seconds);

  /// All ranks, after the last communication: stops the watchdog and finalizes MPI.
  void finalize();
  /// Ends all processes of the run with this exit code. This process ends within kAbortSeconds even if
  /// MPI_Abort hangs because the host has lost its network.
  [[noreturn]] void abort(int code) noexcept;
  static constexpr double kAbortSeconds = 5;

 private:
  explicit CommEnvironment(CommEnvironment& whole);
  CommEnvironment* whole_ = nullptr;  ///< of a group: the environment of the run
  std::optional<LocalRanks> local_;
  bool uses_mpi_ = false, thread_multiple_ = true, finalized_ = false;
  const char* thread_level_ = "none";
  std::string start_warning_;
  std::vector<std::string> hosts_;
  std::unique_ptr<AdaptiveTimeout> adaptive_;
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Watchdog> watchdog_;
};

/// The first line of the MPI library's version text ("Open MPI v4.1.4, ..."). Callable before MPI_Init.
std::string mpi_library_version();

}  // namespace lockstep
