// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// NCCL for several ranks on one GPU, so that its calls can be tested where there is a single card. It refuses
// two ranks with the same host and the same bus address. With a host name of its own for each rank
// (NCCL_HOSTID) it takes them for hosts, and connects them by sockets: slow, but the real library.
#pragma once

#include "comm/communicator.h"

namespace lockstep {

/// From now on NCCL takes each rank for a host of its own. All ranks, before NCCL's first call in the
/// process. If all are on one host, messages stay on its loopback interface unless NCCL_SOCKET_IFNAME is set.
void take_ranks_for_hosts(const Communicator& world, int ranks_on_host);

}  // namespace lockstep
