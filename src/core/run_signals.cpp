// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/run_signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "core/error.h"

namespace lockstep {

namespace {

std::atomic<int> g_stop{0};
std::atomic<bool> g_interrupted{false};
std::atomic<std::int64_t> g_interrupted_at{0};  // nanoseconds
std::atomic<unsigned> g_saves{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free && std::atomic<unsigned>::is_always_lock_free);

std::int64_t nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void stop(int signal) {
  int none = 0;
  g_stop.compare_exchange_strong(none, signal);
}

void interrupt() {
  const std::int64_t now = nanoseconds();
  if (!g_interrupted.exchange(true)) {
    g_interrupted_at = now;
    return;
  }
  if (static_cast<double>(now - g_interrupted_at) < kSecondInterruptSeconds * 1e9) return;
  constexpr char text[] = "lockstep: interrupted again: ending at once, without saving\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, sizeof text - 1);
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);  // delivered when this handler returns
}

// Calls only functions that POSIX declares async-signal-safe, and restores errno.
void handle(int signal, siginfo_t* info, void*) {
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
  errno = error;
}

void install(int signal) {
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  LOCKSTEP_CHECK(::sigaction(signal, &action, nullptr) == 0, "sigaction({}): {}", signal_name(signal),
                 std::strerror(errno));
}

}  // namespace

void install_run_signals(FunctionRef<const char*(const char*)> get_env) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT}) install(signal);
  struct sigaction present {};
  if (::sigaction(SIGHUP, nullptr, &present) != 0 || present.sa_handler != SIG_IGN) install(SIGHUP);
  // With this option mpirun forwards the CONT of a user who has suspended the job and resumes it.
  if (get_env("OMPI_MCA_orte_local_daemon_uri") != nullptr &&
      get_env("OMPI_MCA_orte_forward_job_control") == nullptr)
    install(SIGCONT);
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
