// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl_hosts.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"

namespace lockstep {

void take_ranks_for_hosts(const Communicator& world, int ranks_on_host) {
  const std::string name = fmt::format("lockstep-rank-{}", world.rank());
  const bool set = ::setenv("NCCL_HOSTID", name.c_str(), 1) == 0 &&
                   (ranks_on_host != world.size() || ::setenv("NCCL_SOCKET_IFNAME", "lo", 0) == 0);
  LOCKSTEP_REQUIRE(set, ErrorKind::communication, "NCCL's host name of the rank could not be set");
}

}  // namespace lockstep
