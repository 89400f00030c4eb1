// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What signals ask of a run:
//
//   USR1, TERM, HUP   stop, saved; the run wants to go on later
//   INT               stop, saved; a second one, a second later or more, ends the process at once
//   USR2              save and go on
//   CONT              under Open MPI's mpirun, from mpirun itself: it is about to end the run (TERM follows
//                     a second later, KILL after another one), and so counts as TERM
//
// Handlers do no more than set lock-free atomics, which the training loop looks at (hooks/signal_hook.h). A
// signal that comes twice, from the terminal and forwarded by a launcher, counts once. HUP stays ignored
// where it was (nohup).
#pragma once

#include "core/function_ref.h"

namespace lockstep {

/// Two INT that are closer to each other are one Ctrl-C.
inline constexpr double kSecondInterruptSeconds = 1;

/// For the rest of the process's life. Main thread, before there are others. `get_env` as std::getenv: tells
/// whether Open MPI's mpirun started the process.
void install_run_signals(FunctionRef<const char*(const char*)> get_env);

/// SIGINT if there was one, or else the first that asked for a stop; 0: none. Any thread, no system call.
int stop_signal();
/// How many SIGUSR2 there were. Any thread, no system call.
unsigned save_signals();

/// "USR1", "TERM", ...
const char* signal_name(int signal);

}  // namespace lockstep
