// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The signals that control a run:
//
//   USR1, TERM, HUP   save and stop; the run is to be continued later
//   INT               save and stop; a second one, at least a second later, ends the process at once, unless
//                     a program around has a handler for it
//   USR2              save and continue
//   CONT              under Open MPI's mpirun, if mpirun sent it: counts as TERM, because mpirun is about to
//                     end the run (it sends TERM a second later and KILL after another second)
//
// The handlers only set lock-free atomics, which the training loop polls (hooks/signal_hook.h), and then call
// the handler that was there before, so that a program around learns of the signal, too. A signal that
// arrives twice, from the terminal and forwarded by a launcher, counts once. HUP stays ignored if it was
// ignored at the start (nohup).
#pragma once

#include "core/function_ref.h"

namespace lockstep {

/// Two INT signals within this time count as one Ctrl-C.
inline constexpr double kSecondInterruptSeconds = 1;

/// The handlers are installed while an object of this class lives; then those of the program around are there
/// again. An object within the life of another changes nothing. Requests begin with the outermost one:
/// signals before it are forgotten. One thread at a time.
class RunSignals {
 public:
  /// `get_env` is std::getenv; it shows whether Open MPI's mpirun started the process.
  explicit RunSignals(FunctionRef<const char*(const char*)> get_env);
  ~RunSignals();
  RunSignals(const RunSignals&) = delete;
  RunSignals& operator=(const RunSignals&) = delete;
};

/// For a program of Lockstep: installs the handlers for the rest of the process's life. Main thread, before
/// other threads start.
void install_run_signals(FunctionRef<const char*(const char*)> get_env);

/// The signal that requests a stop: SIGINT if it arrived, otherwise the first one; 0 if there is none. Any
/// thread; no system call.
int stop_signal();
/// The number of SIGUSR2 so far. Any thread; no system call.
unsigned save_signals();

/// "USR1", "TERM", ...
const char* signal_name(int signal);

}  // namespace lockstep
