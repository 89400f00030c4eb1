// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sets that are kept in memory are there once per host: its ranks read parts of them into memory that they
// share.
#pragma once

#include "comm/communicator.h"
#include "run/sections/config.h"
#include "run/setup/opened_data.h"
#include "run/setup/run_needs.h"

namespace lockstep {

/// All ranks, after the bad records are known and before read_data(). `host`: the ranks of this host. Small
/// sets, those that are read while they are used, and those for which the host has no room in shared memory
/// are left to read_data(). Errors are the same on all ranks.
void share_memory_of_host(Communicator& world, Communicator& host, const Config& config,
                          const RunNeeds& needs, OpenedData& opened);

}  // namespace lockstep
