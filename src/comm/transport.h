// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Detects how messages between two ranks travel: shared memory, TCP over an interface, or a fabric. MPI has
// no call for this. After two ranks have exchanged a message, the detection looks for a TCP connection
// between them (both ends know both addresses) and for a mapped segment of Open MPI's shared memory. If it
// finds neither, the transport is that of Open MPI's selected component, or unknown.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

/// One end of a TCP connection. Addresses have 16 bytes: IPv6, or IPv4 in the first four.
struct TcpEnd {
  std::array<std::uint8_t, 16> local{}, remote{};
  std::uint16_t local_port = 0, remote_port = 0;
  std::uint8_t is_ipv6 = 0;
  std::array<char, 16> interface {};  ///< of the local address
};

/// The transports that one rank detects; ranks exchange it as bytes.
struct TransportView {
  static constexpr int kTcpEnds = 64, kLocalRanks = 256;  ///< limits; further ones are ignored
  std::array<char, 64> host{};
  std::int32_t local_rank = -1;  ///< assigned by Open MPI's launcher
  std::int32_t num_tcp = 0;
  std::array<TcpEnd, kTcpEnds> tcp{};
  std::array<std::uint8_t, kLocalRanks> shared{};  ///< per local rank: 1 if its segment is mapped
};

/// The Open MPI components that this process has loaded: "pml ob1", "btl tcp". Empty for another library and
/// for built-in components.
std::vector<std::string> loaded_mpi_components();

/// The log lines, one per kind of transport: "within host a: shared memory", "between hosts a and b: TCP over
/// eth0 (10.0.0.1 - 10.0.0.2)". `pairs`: the ranks that have exchanged a message.
std::vector<std::string> transport_lines(std::span<const TransportView> views,
                                         std::span<const std::string> components,
                                         std::span<const std::array<int, 2>> pairs);

/// All ranks. Exchanges a message between all pairs of up to 32 ranks; with more ranks, between two ranks of
/// each host and between one rank of each pair of hosts (of more than 64 hosts, neighbours only). Returns the
/// lines for the chief's log, the same on all ranks.
std::vector<std::string> describe_transports(Communicator& world, const std::vector<std::string>& hosts);

/// The time after which Open MPI's mpirun notices a lost host, if it started this process and reports the
/// setting.
std::optional<double> launcher_notices_after_seconds();
/// True if Open MPI's mpirun itself, not one of its daemons, started this process.
bool is_launcher_on_this_host();

}  // namespace lockstep
