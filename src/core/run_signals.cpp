// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/run_signals.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>

#include "core/error.h"

namespace lockstep {

namespace {

std::atomic<int> g_stop{0};
std::atomic<bool> g_interrupted{false};
std::atomic<std::int64_t> g_interrupted_at{0};  // nanoseconds
std::atomic<unsigned> g_saves{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free && std::atomic<unsigned>::is_always_lock_free);

constexpr std::array kSignals{SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP, SIGCONT};
/// What was there before; of signals that are not installed nothing is known.
std::array<std::optional<struct sigaction>, kSignals.size()> g_before;
int g_objects = 0;

std::int64_t nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void stop(int signal) {
  int none = 0;
  g_stop.compare_exchange_strong(none, signal);
}

/// The handler of the program around; null: none, or the system's.
const struct sigaction* handler_of_program(int signal) {
  const auto at = std::ranges::find(kSignals, signal) - kSignals.begin();
  const std::optional<struct sigaction>& before = g_before[static_cast<std::size_t>(at)];
  if (!before || before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN) return nullptr;
  return &*before;
}

void call_handler_of_program(int signal, siginfo_t* info, void* context) {
  const struct sigaction* const program = handler_of_program(signal);
  if (program == nullptr) return;
  if ((program->sa_flags & SA_SIGINFO) != 0)
    program->sa_sigaction(signal, info, context);
  else
    program->sa_handler(signal);
}

void interrupt() {
  const std::int64_t now = nanoseconds();
  if (!g_interrupted.exchange(true)) {
    g_interrupted_at = now;
    return;
  }
  if (static_cast<double>(now - g_interrupted_at) < kSecondInterruptSeconds * 1e9) return;
  if (handler_of_program(SIGINT) != nullptr) return;  // it decides
  constexpr char text[] = "lockstep: interrupted again: ending at once, without saving\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, sizeof text - 1);
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);  // delivered when this handler returns
}

// Calls only functions that POSIX declares async-signal-safe, and restores errno.
void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  switch (signal) {
    case SIGINT:
      interrupt();
      break;
    case SIGUSR2:
      ++g_saves;
      break;
    case SIGCONT:
      if (info->si_code == SI_USER && info->si_pid == ::getppid()) stop(signal);
      break;
    default:
      stop(signal);
  }
  call_handler_of_program(signal, info, context);
  errno = error;
}

void install(int signal) {
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  struct sigaction before {};
  const auto at = static_cast<std::size_t>(std::ranges::find(kSignals, signal) - kSignals.begin());
  const bool known = ::sigaction(signal, nullptr, &before) == 0;
  g_before[at] = before;  // a signal may arrive at once
  LOCKSTEP_CHECK(known && ::sigaction(signal, &action, nullptr) == 0, "sigaction({}): {}",
                 signal_name(signal), std::strerror(errno));
}

}  // namespace

RunSignals::RunSignals(FunctionRef<const char*(const char*)> get_env) {
  if (g_objects++ > 0) return;
  g_stop = 0;
  g_interrupted = false;
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT}) install(signal);
  struct sigaction present {};
  if (::sigaction(SIGHUP, nullptr, &present) != 0 || present.sa_handler != SIG_IGN) install(SIGHUP);
  // With this option mpirun forwards the CONT of a user who has suspended the job and resumes it.
  if (get_env("OMPI_MCA_orte_local_daemon_uri") != nullptr &&
      get_env("OMPI_MCA_orte_forward_job_control") == nullptr)
    install(SIGCONT);
}

RunSignals::~RunSignals() {
  if (--g_objects > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (!g_before[i]) continue;
    struct sigaction present {};  // the program may have installed another one meanwhile
    if (::sigaction(kSignals[i], nullptr, &present) == 0 && present.sa_sigaction == handle)
      ::sigaction(kSignals[i], &*g_before[i], nullptr);
    g_before[i].reset();
  }
}

void install_run_signals(FunctionRef<const char*(const char*)> get_env) {
  static const RunSignals* const forever = new RunSignals(get_env);
  (void)forever;
}

int stop_signal() { return g_interrupted.load() ? SIGINT : g_stop.load(); }

unsigned save_signals() { return g_saves.load(); }

const char* signal_name(int signal) {
  switch (signal) {
    case SIGUSR1:
      return "USR1";
    case SIGUSR2:
      return "USR2";
    case SIGTERM:
      return "TERM";
    case SIGHUP:
      return "HUP";
    case SIGINT:
      return "INT";
    case SIGCONT:
      return "CONT";
  }
  return "unknown";
}

}  // namespace lockstep
