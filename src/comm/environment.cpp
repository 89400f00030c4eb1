// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/environment.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/adaptive_timeout.h"
#include "comm/host_names.h"
#include "comm/mpi_communicator.h"
#include "comm/mpi_error.h"
#include "comm/mpi_watchdog_peers.h"
#include "comm/self_communicator.h"
#include "comm/start_watch.h"
#include "comm/transport.h"
#include "comm/watchdog.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/last_resort.h"
#include "core/last_words.h"
#include "core/log.h"
#include "core/process_environment.h"
#include "core/scalar.h"
#include "core/thread_ban.h"

namespace lockstep {

namespace {

const char* name_of_thread_level(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "single";
    case MPI_THREAD_FUNNELED:
      return "funneled";
    case MPI_THREAD_SERIALIZED:
      return "serialized";
    case MPI_THREAD_MULTIPLE:
      return "multiple";
  }
  return "unknown";
}

// If the launcher needs longer than this to notice a lost host, this process does not wait for it.
constexpr double kLauncherSeconds = 60;
constexpr double kLauncherMarginSeconds = 2;

constexpr auto kLowerRankSpeaksFirst = std::chrono::milliseconds(500);

/// When a rank says that it waits for the others: rank 0, and rank 1 in case that rank 0 is the one waited
/// for.
double start_notice_seconds(int rank) { return rank == 0 ? 10 : rank == 1 ? 20 : 0; }

int number(const char* text) { return text == nullptr ? 0 : std::atoi(text); }

}  // namespace

bool started_by_launcher(GetEnv get_env) {
  // Open MPI's mpirun; PMIx (srun --mpi=pmix, prun); PMI-1 and PMI-2 (MPICH, Intel MPI, srun --mpi=pmi2).
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI2_RANK"})
    if (get_env(name) != nullptr) return true;
  return false;
}

int launcher_rank(GetEnv get_env) {
  // With what the launcher sets beside the rank. SLURM_PROCID says nothing: every program in a batch script
  // has it, and so has each of several programs that srun started without MPI.
  constexpr std::pair<const char*, const char*> kLaunchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMIX_RANK", "PMIX_NAMESPACE"},
      {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [name, companion] : kLaunchers)
    if (const char* text = get_env(name); text != nullptr && get_env(companion) != nullptr)
      if (const auto rank = parse_integer(text)) return static_cast<int>(*rank);
  return 0;
}

int launcher_rank_hint() { return launcher_rank(process_environment); }

std::string start_warning(GetEnv get_env, int ranks) {
  if (const int tasks = number(get_env("SLURM_STEP_NUM_TASKS")); tasks > 1 && tasks != ranks)
    return fmt::format("Slurm gave {} tasks, MPI sees {}: start with srun --mpi=pmix or mpirun", tasks,
                       ranks);
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const int processes = number(get_env(name)); processes > 0 && processes != ranks)
      return fmt::format(
          "the launcher started {} processes, MPI sees {}: use the mpirun of the MPI library that "
          "Lockstep was built with ({})",
          processes, ranks, mpi_library_version());
  if (const int tasks = number(get_env("SLURM_NTASKS"));
      tasks > 1 && ranks == 1 && get_env("SLURM_STEP_NUM_TASKS") == nullptr)
    return fmt::format("Slurm gave {} tasks, MPI sees {}: start with srun --mpi=pmix or mpirun", tasks,
                       ranks);
  return {};
}

std::string mpi_library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check_mpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version", "mpi_library_version");
  std::string version = text.data();  // up to the zero byte, which some libraries include in `length`
  version.resize(std::min(version.size(), version.find_first_of("\n\r")));
  // MPICH says "MPICH Version:<tab>4.0.2".
  constexpr std::string_view kWord = " Version:";
  if (const auto at = version.find(kWord); at != std::string::npos) version.erase(at, kWord.size());
  std::ranges::replace(version, '\t', ' ');
  return version;
}

namespace {

bool mpi_is(int (*question)(int*)) {
  int answer = 0;
  question(&answer);
  return answer != 0;
}

/// The level that the program around has initialised MPI with. Throws Error(usage) if it forbids this thread.
int host_thread_level() {
  int level = MPI_THREAD_SINGLE, is_main = 0;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread", "the start");
  check_mpi(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main", "the start");
  if (level < MPI_THREAD_SERIALIZED && is_main == 0)
    throw Error(ErrorKind::usage,
                fmt::format("communication starts in a second thread, and the program has initialised MPI at "
                            "the thread level \"{}\"",
                            name_of_thread_level(level)),
                "", "Start it in the thread of MPI_Init, or ask MPI_Init_thread for MPI_THREAD_MULTIPLE.");
  return level;
}

}  // namespace

CommEnvironment::CommEnvironment(CommOptions options)
    : CommEnvironment(std::nullopt, std::move(options), mpi_is(MPI_Initialized) && !mpi_is(MPI_Finalized)) {}

CommEnvironment::CommEnvironment(HostCommunicator host, CommOptions options)
    : CommEnvironment(std::optional(host), std::move(options), true) {}

CommEnvironment::CommEnvironment(const std::optional<HostCommunicator>& host, CommOptions options,
                                 bool is_guest)
    : options_(std::move(options)),
      last_resort_(std::make_unique<LastResortScope>(options_.last_resort)),
      is_guest_(is_guest) {
  const bool launched = started_by_launcher(process_environment);
  if (mpi_is(MPI_Finalized) && (host || launched))
    throw Error(ErrorKind::usage, "MPI was finalized already in this process, and cannot be started again",
                "",
                "Initialise MPI in the program (MPI_Init_thread), and finalize it after the last "
                "CommEnvironment; then there may be many.");
  if (host && !mpi_is(MPI_Initialized))
    throw Error(ErrorKind::usage, "a communicator is given, and MPI is not initialised", "",
                "Call MPI_Init_thread first.");
  if (is_guest_) {
    const int level = host_thread_level();
    thread_multiple_ = level == MPI_THREAD_MULTIPLE;
    if (level == MPI_THREAD_SINGLE) thread_ban_ = std::make_unique<ThreadBan>();
    thread_level_ = name_of_thread_level(level);
    connect(host);
    configure_log(world_->size() > 1 ? world_->rank() : -1, options_.log_level);
  } else if (launched) {
    connect(std::nullopt);
  } else {
    world_ = std::make_unique<SelfCommunicator>("world");
    hosts_ = {host_name()};
  }
  if (!is_guest_) start_warning_ = lockstep::start_warning(process_environment, world_->size());
  if (may_use_threads()) start_watchdog();
}

/// Nobody knows which ranks are there before the first exchange, so a rank that stays away is noticed by
/// time.
void CommEnvironment::connect(const std::optional<HostCommunicator>& host) {
  std::optional<StartWatch> watch;
  if (may_use_threads()) {
    int rank = 0;
    if (is_guest_)
      check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank", "the start");
    else
      rank = launcher_rank(process_environment);
    watch.emplace(
        StartWatch::Options{.limit_seconds = options_.start_timeout_seconds,
                            .notice_seconds = start_notice_seconds(rank),
                            .who = fmt::format("rank {} on host {}", rank, host_name())},
        [](const std::string& message) { std::fputs(message.c_str(), stderr); },
        [this, rank](const std::string& message) {
          // Of the ranks that wait, the lowest speaks; the launcher ends the others at once.
          std::this_thread::sleep_for(kLowerRankSpeaksFirst * std::min(rank, 4));
          if (options_.last_resort) options_.last_resort(1, message);
          std::fputs(message.c_str(), stderr);
          if (is_guest_) MPI_Abort(MPI_COMM_WORLD, 1);
          std::_Exit(1);  // MPI_Abort is not there before MPI_Init_thread returns
        });
    watch->set_phase(is_guest_ ? "the first exchange" : "MPI_Init_thread");
  }
  if (!is_guest_) {
    int level = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread", "the start");
    thread_multiple_ = level == MPI_THREAD_MULTIPLE;
    thread_level_ = name_of_thread_level(level);
    // Some libraries raise errors of waits there, and not on the communicator of the message.
    for (const MPI_Comm whole : {MPI_COMM_WORLD, MPI_COMM_SELF})
      check_mpi(MPI_Comm_set_errhandler(whole, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", "the start");
    if (watch) watch->set_phase("the first exchange");
  }
  const MPI_Comm comm = host ? host->as<MPI_Comm>() : MPI_COMM_WORLD;
  LOCKSTEP_REQUIRE(comm != MPI_COMM_NULL, ErrorKind::usage,
                   "the communicator is MPI_COMM_NULL: this rank has no part in it");
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size", "the start");
  uses_mpi_ = !is_guest_ || size > 1;
  if (uses_mpi_) {
    world_ = MpiCommunicator::of(comm, "world");
  } else {  // a rank alone needs no MPI, and its threads no thread level
    world_ = std::make_unique<SelfCommunicator>("world");
    thread_multiple_ = may_use_threads();
  }
  hosts_ = host_names(*world_);
  if (uses_mpi_ && size > 1 && thread_multiple_)
    watchdog_peers_ = make_mpi_watchdog_peers(static_cast<MpiCommunicator&>(*world_));
}

void CommEnvironment::start_watchdog() {
  if (!options_.timeout_seconds) adaptive_ = std::make_unique<AdaptiveTimeout>();
  WatchdogIdentity identity{world_->rank(), world_->size(), host_name(), hosts_};
  if (std::ranges::any_of(hosts_, [&](const std::string& host) { return host != hosts_.front(); }))
    if (const auto seconds = launcher_notices_after_seconds(); seconds && *seconds <= kLauncherSeconds)
      identity.launcher_seconds = *seconds + kLauncherMarginSeconds;
  watchdog_ = std::make_unique<Watchdog>(
      options_.timeout_seconds.value_or(AdaptiveTimeout::kStartSeconds), identity, std::move(watchdog_peers_),
      [this, wait = identity.launcher_seconds](const std::string& message, bool host_is_lost) {
        // If Open MPI's mpirun and its daemons notice the loss of a host by themselves, they end the run at
        // once. If they first try to send something to the lost host, they notice nothing until TCP gives up,
        // after a quarter of an hour. The output of this process also passes through its host's daemon.
        const auto give_launcher_time = [&](bool now) {
          if (host_is_lost && now) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
        };
        if (options_.last_resort) options_.last_resort(1, message);
        const bool here = is_launcher_on_this_host();
        give_launcher_time(!here);
        say_last_words(message, 1, kLastWordsSeconds);
        give_launcher_time(here);
        end_processes(1);
      });
}

CommEnvironment::~CommEnvironment() {
  watchdog_.reset();
  if (whole_ == nullptr && uses_mpi_ && !is_guest_ && !finalized_ && std::uncaught_exceptions() == 0)
    std::fputs(
        "lockstep: a CommEnvironment was destroyed without finalize() or abort(); MPI is not finalized\n",
        stderr);
}

CommEnvironment::CommEnvironment(CommEnvironment& whole)
    : whole_(&whole),
      is_guest_(whole.is_guest_),
      uses_mpi_(whole.uses_mpi_),
      thread_multiple_(whole.thread_multiple_),
      thread_level_(whole.thread_level_) {}

std::unique_ptr<CommEnvironment> CommEnvironment::split(int color) {
  LOCKSTEP_CHECK(whole_ == nullptr, "a group is split");
  std::unique_ptr<CommEnvironment> group(new CommEnvironment(*this));
  group->local_ = local_ranks();
  std::vector<int> colors(static_cast<std::size_t>(world_->size()));
  world_->allgather(&color, sizeof color, colors.data(), "the groups of ranks");
  for (std::size_t rank = 0; rank < colors.size(); ++rank)
    if (colors[rank] == color) group->hosts_.push_back(hosts_[rank]);
  if (uses_mpi_) group->world_ = static_cast<MpiCommunicator&>(*world_).split(color, "group");
  // MPI is not needed between the threads of one rank.
  if (group->hosts_.size() == 1) group->world_ = std::make_unique<SelfCommunicator>("group");
  return group;
}

CommEnvironment::LocalRanks CommEnvironment::local_ranks() {
  if (!local_) {
    const std::unique_ptr<Communicator> host = world_->split_by_host("host");
    local_ = {host->rank(), host->size()};
  }
  return *local_;
}

void CommEnvironment::wait_for_all(const char* what) {
  LOCKSTEP_CHECK(whole_ == nullptr, "a group waits for all");
  if (!uses_mpi_) return;
  const PatientWait patience;
  static_cast<MpiCommunicator&>(*world_).sleeping_barrier(what);
}

void CommEnvironment::restart_timeout() {
  if (whole_ != nullptr) return whole_->restart_timeout();
  if (!adaptive_) return;
  adaptive_ = std::make_unique<AdaptiveTimeout>();
  watchdog_->set_timeout_seconds(adaptive_->limit_seconds());
}

void CommEnvironment::set_timeout_seconds(double seconds) {
  if (whole_ != nullptr) return whole_->set_timeout_seconds(seconds);
  adaptive_.reset();
  if (watchdog_) watchdog_->set_timeout_seconds(seconds);
}

void CommEnvironment::step_took(double seconds) {
  if (whole_ != nullptr) return whole_->step_took(seconds);
  if (adaptive_ && adaptive_->step(seconds)) watchdog_->set_timeout_seconds(adaptive_->limit_seconds());
}

void CommEnvironment::finalize() {
  LOCKSTEP_CHECK(!finalized_ && whole_ == nullptr, "finalize() was called twice, or of a group");
  // The watchdog still watches this barrier; MPI_Finalize would wait without a limit.
  world_->barrier("the end of the run");
  watchdog_.reset();  // it may ask MPI whether its messages have left
  finalized_ = true;
  if (uses_mpi_ && !is_guest_) check_mpi(MPI_Finalize(), "MPI_Finalize", "the end");
}

void CommEnvironment::abort(int code) noexcept {
  const CommOptions& options = whole_ != nullptr ? whole_->options_ : options_;
  if (options.last_resort) options.last_resort(code, {});
  end_processes(code);
}

void CommEnvironment::end_processes(int code) noexcept {
  // MPI_Abort contacts the launcher, and blocks for ever if the launcher cannot be reached.
  try {
    std::thread([code] {
      std::this_thread::sleep_for(std::chrono::duration<double>(kAbortSeconds));
      std::_Exit(code);
    }).detach();
  } catch (const std::system_error&) {  // no thread available: rely on MPI_Abort
  }
  world_->abort(code);
  std::_Exit(code);  // not reached; [[noreturn]] has no effect through a virtual call
}

}  // namespace lockstep
