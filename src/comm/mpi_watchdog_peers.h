// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages between the watchdogs over MPI. Needs MPI_THREAD_MULTIPLE. Does not include mpi.h.
#pragma once

#include <memory>

#include "comm/watchdog.h"

namespace lockstep {

class MpiCommunicator;

/// Collective over `ranks`.
std::unique_ptr<WatchdogPeers> make_mpi_watchdog_peers(MpiCommunicator& ranks);

}  // namespace lockstep
