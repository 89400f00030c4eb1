// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The watchdogs' conversation over MPI. Needs MPI_THREAD_MULTIPLE. No mpi.h here.
#pragma once

#include <memory>

#include "comm/watchdog.h"

namespace lockstep {

/// Collective over all ranks of the run.
std::unique_ptr<WatchdogPeers> make_mpi_watchdog_peers();

}  // namespace lockstep
