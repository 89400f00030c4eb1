// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The start and the end of communication: one CommEnvironment per process, made first in main and ended with
// finalize(), which all ranks call when all went well.
//
// Without a launcher (no mpirun, no srun) MPI is not even initialised: the group is this process. An
// environment variable of a launcher only decides whether MPI_Init is called; who the ranks are says MPI. On
// an error path nobody calls finalize(): print the message, then abort(code), which ends all ranks. The
// destructor never communicates, so that an exception can travel through it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/adaptive_timeout.h"
#include "comm/communicator.h"
#include "comm/watchdog.h"
#include "core/function_ref.h"

namespace lockstep {

using GetEnv = FunctionRef<const char*(const char* name)>;

/// Whether the environment shows that mpirun, srun or a relative started this process.
bool started_by_launcher(GetEnv get_env);
/// One line if the launcher's idea of the number of ranks is not MPI's ("Slurm gave 8 tasks, MPI sees 1:
/// start with srun --mpi=pmix or mpirun"), else empty.
std::string start_warning(GetEnv get_env, int ranks);

struct CommOptions {
  /// How long one communication call may take before the watchdog ends the run; 0 switches it off; nothing:
  /// found from the first steps (adaptive_timeout.h).
  std::optional<double> timeout_seconds;
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
  /// Whether other threads than main's may communicate (MPI_THREAD_MULTIPLE was given, or there is no MPI).
  bool thread_multiple() const { return thread_multiple_; }
  /// "multiple", "serialized", "funneled", "single"; "none" without MPI.
  const char* thread_level() const { return thread_level_; }
  /// See lockstep::start_warning.
  const std::string& start_warning() const { return start_warning_; }

  void set_timeout_seconds(double seconds);
  /// For the limit that is found from the first steps; nothing otherwise. Main thread.
  void step_took(double seconds);

  /// All ranks, after the last communication: ends the watchdog and MPI.
  void finalize();
  /// Ends all processes of the run with this exit code; this process within kAbortSeconds even if nobody
  /// hears of it (a host that is cut off).
  [[noreturn]] void abort(int code) noexcept;
  static constexpr double kAbortSeconds = 5;

 private:
  bool uses_mpi_ = false, thread_multiple_ = true, finalized_ = false;
  const char* thread_level_ = "none";
  std::string start_warning_;
  std::vector<std::string> hosts_;
  std::optional<AdaptiveTimeout> adaptive_;
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Watchdog> watchdog_;
};

/// The first line of the library's own version text ("Open MPI v4.1.4, ..."). Needs no MPI_Init.
std::string mpi_library_version();

}  // namespace lockstep
