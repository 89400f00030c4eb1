// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which way messages between two ranks go: shared memory, TCP over which interface, a fabric. MPI has no call
// for it, so this looks at what there is once two ranks have exchanged a message: TCP connections between
// them (both ends know both addresses), and the segments of Open MPI's shared memory that one has mapped of
// the other. What shows neither is the fabric's that Open MPI's selected component stands for, or not known.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

/// One end of a TCP connection. Addresses as 16 bytes: IPv6, or IPv4 in the first four.
struct TcpEnd {
  std::array<std::uint8_t, 16> local{}, remote{};
  std::uint16_t local_port = 0, remote_port = 0;
  std::uint8_t is_ipv6 = 0;
  std::array<char, 16> interface {};  ///< that has the local address
};

/// What one rank sees of its own transports; sent as bytes between ranks.
struct TransportView {
  static constexpr int kTcpEnds = 64, kLocalRanks = 256;  ///< what is beyond is not seen
  std::array<char, 64> host{};
  std::int32_t local_rank = -1;  ///< by Open MPI's launcher
  std::int32_t num_tcp = 0;
  std::array<TcpEnd, kTcpEnds> tcp{};
  std::array<std::uint8_t, kLocalRanks> shared{};  ///< by local rank: its segment is mapped
};

/// Names of Open MPI's components that this process has loaded: "pml ob1", "btl tcp". Empty with another
/// library, or with components that are built in.
std::vector<std::string> loaded_mpi_components();

/// The lines for the log, one per kind of transport: "within host a: shared memory", "between hosts a and b:
/// TCP over eth0 (10.0.0.1 - 10.0.0.2)". `pairs`: ranks that have exchanged a message.
std::vector<std::string> transport_lines(std::span<const TransportView> views,
                                         std::span<const std::string> components,
                                         std::span<const std::array<int, 2>> pairs);

/// All ranks. Exchanges a message between all pairs of up to 32 ranks, or, of more, between one rank of each
/// host and its next ones, and says what the chief's log should have; the same on all ranks.
std::vector<std::string> describe_transports(Communicator& world, const std::vector<std::string>& hosts);

/// How long a host that is cut off stays unnoticed by Open MPI's mpirun, if that started this process and
/// can be asked.
std::optional<double> launcher_notices_after_seconds();
/// Open MPI's mpirun itself, not one of its daemons, started this process.
bool is_launcher_on_this_host();

}  // namespace lockstep
