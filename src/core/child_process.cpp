// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/run_signals.h"

namespace lockstep {

namespace {

constexpr std::size_t kNoteBytes = 8192;
constexpr int kPollMilliseconds = 100;

void limit(decltype(RLIMIT_CORE) resource, rlim_t soft, rlim_t hard) {
  const rlimit value{soft, hard};
  ::setrlimit(resource, &value);  // may only be raised by root; a failure is harmless
}

[[noreturn]] void be_child(FunctionRef<void()> action, const ChildLimits& limits, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGPIPE})
    std::signal(signal, SIG_IGN);  // the parent decides
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU}) std::signal(signal, SIG_DFL);
  limit(RLIMIT_CORE, 0, 0);
  const auto cpu_seconds = static_cast<rlim_t>(std::ceil(limits.cpu_seconds));
  limit(RLIMIT_CPU, cpu_seconds, cpu_seconds + 5);
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  try {
    action();
  } catch (...) {  // happens again in the parent, which reports it
  }
  ::_exit(0);
}

std::string signal_text(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "crashes (SIGSEGV)";
    case SIGBUS:
      return "crashes (SIGBUS)";
    case SIGABRT:
      return "crashes (SIGABRT)";
    case SIGFPE:
      return "crashes (SIGFPE)";
    case SIGKILL:
      return "is killed, which usually means that memory ran out";
    default:
      return fmt::format("crashes (signal {})", signal);
  }
}

}  // namespace

ChildNote::ChildNote() {
  void* const memory = ::mmap(nullptr, kNoteBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  LOCKSTEP_REQUIRE(memory != MAP_FAILED, ErrorKind::device, "cannot map {} bytes: {}", kNoteBytes,
                   std::strerror(errno));
  memory_ = static_cast<char*>(memory);
}

ChildNote::~ChildNote() { ::munmap(memory_, kNoteBytes); }

void ChildNote::set(const std::string& text) {
  const std::size_t length = std::min(text.size(), kNoteBytes - 1);
  std::copy_n(text.data(), length, memory_);
  memory_[length] = '\0';
}

std::string ChildNote::text() const { return memory_; }

std::optional<std::string> run_in_child(FunctionRef<void()> action, const ChildLimits& limits) {
  using Clock = std::chrono::steady_clock;
  std::array<int, 2> ends{};  // the reading end sees end-of-file when the child is gone
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_child(action, limits, parent);
  }
  ::close(ends[1]);
  if (child < 0) {  // no more processes are allowed: go on without
    ::close(ends[0]);
    return std::nullopt;
  }
  const auto end = Clock::now() +
                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
  bool late = false, stopped = false;
  for (pollfd gone{ends[0], POLLIN, 0}; ::poll(&gone, 1, kPollMilliseconds) <= 0;) {
    late = Clock::now() > end;
    stopped = stop_signal() != 0;
    if (!late && !stopped) continue;
    ::kill(child, SIGKILL);
    break;
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (stopped || late) return std::nullopt;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    return fmt::format("is busy for more than {} s", limits.cpu_seconds);
  if (WIFSIGNALED(status)) return signal_text(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return fmt::format("ends the process (exit code {})", WEXITSTATUS(status));
  return std::nullopt;
}

}  // namespace lockstep
