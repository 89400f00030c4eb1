// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Start and end of communication.
//
// In a program of Lockstep there is one CommEnvironment, created first in main. If a launcher (mpirun, srun)
// started the process, it initialises MPI; without one the group consists of this process. All ranks call
// finalize() when all went well.
//
// In a program that has initialised MPI itself, at any thread level, it is a guest: it works on the
// communicator that it is given (or on MPI_COMM_WORLD), in message spaces of its own, and leaves MPI, its
// error handlers and its end to the program. There may be many, one after the other or for different
// communicators.
//
//   MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
//   CommEnvironment ranks(part_of_the_ranks);  // an MPI_Comm; all of its ranks
//
// A group of ranks that does work of its own has an environment too (split()): world() are its ranks; time
// limits, the watchdog and the end belong to the environment of the run.
//
// The environment variables of launchers decide only whether MPI_Init is called; ranks and sizes come from
// MPI. In a program of Lockstep an error path prints the message and calls abort(code), which ends all ranks,
// and does not call finalize(). The destructor does not communicate, so that an exception can pass through
// it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/host_communicator.h"
#include "core/log_level.h"
#include "core/process_environment.h"

namespace lockstep {

class AdaptiveTimeout;
class LastResortScope;
class ThreadBan;
class Watchdog;
class WatchdogPeers;

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
  /// What a guest says on standard error: messages of this level and above; ranks other than 0 say warnings
  /// and errors.
  LogLevel log_level = LogLevel::info;
  /// Called when the processes have to end, as nothing else is left: ranks wait in a call that another one
  /// never reaches (`message` says which), or an error of one rank leaves the others in one (`message` is
  /// empty, as it was printed already). From any thread. If it returns, all processes of the program end with
  /// this exit code, after the message has been printed; MPI_Abort is the way.
  std::function<void(int code, const std::string& message)> last_resort = {};
};

class CommEnvironment {
 public:
  /// All ranks of the program. Throws Error(communication), Error(usage).
  explicit CommEnvironment(CommOptions options = {});
  /// The ranks of `host`, an MPI_Comm of the program, which keeps and frees it. All of its ranks. Throws
  /// Error(usage) if MPI is not initialised, or was finalized.
  explicit CommEnvironment(HostCommunicator host, CommOptions options = {});
  ~CommEnvironment();
  CommEnvironment(const CommEnvironment&) = delete;
  CommEnvironment& operator=(const CommEnvironment&) = delete;

  /// All ranks of the run.
  Communicator& world() { return *world_; }
  /// The host of every rank.
  const std::vector<std::string>& hosts() const { return hosts_; }
  bool uses_mpi() const { return uses_mpi_; }
  /// The program around has initialised MPI.
  bool is_guest() const { return is_guest_; }
  /// False: the program has promised MPI to run no second thread (MPI_THREAD_SINGLE).
  bool may_use_threads() const { return !thread_ban_; }
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

  /// All ranks, after the last communication: stops the watchdog, and finalizes MPI unless the program
  /// around has initialised it. A guest may leave it out.
  void finalize();
  /// Ends all processes of the run with this exit code. This process ends within kAbortSeconds even if
  /// MPI_Abort hangs because the host has lost its network.
  [[noreturn]] void abort(int code) noexcept;
  static constexpr double kAbortSeconds = 5;

 private:
  explicit CommEnvironment(CommEnvironment& whole);
  CommEnvironment(const std::optional<HostCommunicator>& host, CommOptions options, bool is_guest);
  void connect(const std::optional<HostCommunicator>& host);
  void start_watchdog();
  [[noreturn]] void end_processes(int code) noexcept;

  CommEnvironment* whole_ = nullptr;  ///< of a group: the environment of the run
  CommOptions options_;
  std::unique_ptr<LastResortScope> last_resort_;  ///< null of a group
  std::optional<LocalRanks> local_;
  bool is_guest_ = false, uses_mpi_ = false, thread_multiple_ = true;
  std::unique_ptr<ThreadBan> thread_ban_;
  bool finalized_ = false;
  const char* thread_level_ = "none";
  std::string start_warning_;
  std::vector<std::string> hosts_;
  std::unique_ptr<AdaptiveTimeout> adaptive_;
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<WatchdogPeers> watchdog_peers_;  ///< until the watchdog starts
  std::unique_ptr<Watchdog> watchdog_;
};

/// The first line of the MPI library's version text ("Open MPI v4.1.4, ..."). Callable before MPI_Init.
std::string mpi_library_version();

}  // namespace lockstep
