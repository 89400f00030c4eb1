// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/hang_rank.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/agree.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/log.h"
#include "core/run_signals.h"
#include "core/timer.h"

volatile int lockstep_debugger_continue = 0;

namespace lockstep {

namespace {

constexpr auto kLook = std::chrono::milliseconds(50);
/// The waiting rank times out this much earlier than the others, so that its message is the one that is
/// printed.
constexpr double kMarginSeconds = 30;

void park(double limit_seconds) {
#ifdef PR_SET_PTRACER
  // Yama may restrict attaching to the parent: allow any process of this user.
  (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
  log_warning(
      "waiting for a debugger on host {}, process {}, for at most {:g} s (--hang-seconds). There:\n"
      "    gdb -p {}\n"
      "    (gdb) set var {{int}}&lockstep_debugger_continue = 1\n"
      "    (gdb) continue",
      host_name(), ::getpid(), limit_seconds, ::getpid());
  const Timer timer;
  while (lockstep_debugger_continue == 0) {
    if (const int signal = stop_signal(); signal != 0) {
      log_warning("signal {}: no debugger is waited for any more", signal_name(signal));
      return;  // the training loop does the rest
    }
    if (timer.seconds() > limit_seconds)
      throw Error(ErrorKind::usage,
                  fmt::format("--hang-rank: no debugger has let the rank go on within {:g} s", limit_seconds),
                  "", "--hang-seconds is the limit.");
    std::this_thread::sleep_for(kLook);
  }
  log_warning("the debugger lets the run go on; a rank may now be late by {:g} s before the run is ended",
              limit_seconds + kMarginSeconds);
}

}  // namespace

std::optional<double> hang_timeout_seconds(const HangArguments& hang, std::optional<double> configured) {
  if (!hang.rank || configured == 0.0) return configured;  // 0: no limit
  return std::max(configured.value_or(0), hang.seconds + kMarginSeconds);
}

void hang_rank(const HangArguments& hang, Communicator& world) {
  if (!hang.rank) return;
  const int rank = *hang.rank;
  if (rank >= world.size())
    throw Error(
        ErrorKind::usage,
        fmt::format("--hang-rank {}: there {} only", rank,
                    world.size() == 1 ? "is rank 0" : fmt::format("are ranks 0 to {}", world.size() - 1)),
        "", "Ranks are counted from 0.");
  if (world.rank() == 0 && rank != 0)
    log_info("rank {} is parked for a debugger; the others wait for it", rank);
  agree(
      world,
      [&] {
        if (world.rank() == rank) park(hang.seconds);
      },
      "waiting for the rank in the debugger");
}

}  // namespace lockstep
