// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/transport.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "comm/transport_probe.h"
#include "core/name_list.h"

namespace lockstep {

namespace {

constexpr int kAllPairs = 32;      // up to this many ranks every pair is examined
constexpr int kAllHosts = 64;      // up to this many hosts every pair of hosts is examined
constexpr std::size_t kShown = 4;  // hosts or pairs of hosts named in a line

std::string address_text(const std::array<std::uint8_t, 16>& address, bool is_ipv6) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, address.data(), text.data(), text.size());
  return text.data();
}

bool is_loopback(const TcpEnd& end) {
  const std::array<std::uint8_t, 16> ipv6_loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return end.is_ipv6 != 0 ? end.local == ipv6_loopback : end.local[0] == 127;
}

/// The connection between two ranks as `one` has it, or null. Loopback addresses are valid within a host
/// only.
const TcpEnd* connection(const TransportView& one, const TransportView& other) {
  for (int i = 0; i < one.num_tcp; ++i) {
    const TcpEnd& end = one.tcp[static_cast<std::size_t>(i)];
    if (is_loopback(end) && one.host != other.host) continue;
    for (int j = 0; j < other.num_tcp; ++j) {
      const TcpEnd& theirs = other.tcp[static_cast<std::size_t>(j)];
      if (end.is_ipv6 == theirs.is_ipv6 && end.local == theirs.remote && end.remote == theirs.local &&
          end.local_port == theirs.remote_port && end.remote_port == theirs.local_port)
        return &end;
    }
  }
  return nullptr;
}

bool shares_memory(const TransportView& one, const TransportView& other) {
  const auto mapped = [](const TransportView& by, const TransportView& of) {
    return of.local_rank >= 0 && of.local_rank < TransportView::kLocalRanks &&
           by.shared[static_cast<std::size_t>(of.local_rank)] != 0;
  };
  return one.host == other.host && (mapped(one, other) || mapped(other, one));
}

/// The transport of a message that uses neither TCP nor Open MPI's shared memory.
std::string by_component(std::span<const std::string> components) {
  for (const auto& [component, text] :
       {std::pair("pml ucx", "UCX, which selects the transport (UCX_TLS; ucx_info -d lists its devices)"),
        std::pair("mtl psm2", "Omni-Path (PSM2)"), std::pair("mtl psm", "InfiniPath (PSM)"),
        std::pair("mtl ofi", "libfabric (OFI)"), std::pair("mtl portals4", "Portals 4")})
    if (std::ranges::find(components, component) != components.end()) return text;
  if (std::ranges::find(components, "btl openib") != components.end())
    return "probably InfiniBand (btl openib)";
  return components.empty() ? std::string("not known")
                            : fmt::format("not known ({})", fmt::join(components, ", "));
}

struct Found {
  std::string transport;
  std::string addresses;  // of one connection
};

Found transport_of(const TransportView& one, const TransportView& other,
                   std::span<const std::string> components) {
  if (const TcpEnd* end = connection(one, other))
    return {fmt::format("TCP over {}", end->interface.front() == '\0' ? "an interface that no longer exists"
                                                                      : end->interface.data()),
            fmt::format("{} - {}", address_text(end->local, end->is_ipv6 != 0),
                        address_text(end->remote, end->is_ipv6 != 0))};
  if (shares_memory(one, other)) return {"shared memory", ""};
  const auto has = [&](const char* name) { return std::ranges::find(components, name) != components.end(); };
  // No other transport was detected, and both are on one host. With XPMEM there is no segment to detect.
  if (one.host == other.host && has("pml ob1") && has("btl vader")) return {"probably shared memory", ""};
  return {by_component(components), ""};
}

/// The pairs of ranks that exchange a message.
std::vector<std::array<int, 2>> pairs_to_look_at(const std::vector<std::string>& hosts) {
  std::vector<std::array<int, 2>> pairs;
  const int ranks = static_cast<int>(hosts.size());
  if (ranks <= kAllPairs) {
    for (int i = 0; i < ranks; ++i)
      for (int j = i + 1; j < ranks; ++j) pairs.push_back({i, j});
    return pairs;
  }
  std::map<std::string, std::vector<int>> of_host;
  for (int i = 0; i < ranks; ++i) of_host[hosts[static_cast<std::size_t>(i)]].push_back(i);
  std::vector<int> first;
  for (const auto& [host, members] : of_host) {
    first.push_back(members.front());
    if (members.size() > 1) pairs.push_back({members[0], members[1]});
  }
  std::ranges::sort(first);
  const std::size_t reach = first.size() <= kAllHosts ? first.size() : 2;
  for (std::size_t i = 0; i < first.size(); ++i)
    for (std::size_t j = i + 1; j < std::min(first.size(), i + reach); ++j)
      pairs.push_back({first[i], first[j]});
  return pairs;
}

/// Exchanges one byte between the ranks of each pair, so that lazily created connections exist.
void touch(Communicator& world, std::span<const std::array<int, 2>> pairs) {
  const char byte = 0;
  std::vector<char> received(static_cast<std::size_t>(world.size()));
  std::vector<OutMessage> out;
  std::vector<InMessage> in;
  for (const auto& [one, other] : pairs) {
    if (one != world.rank() && other != world.rank()) continue;
    const int peer = one == world.rank() ? other : one;
    out.push_back({&byte, 1, peer});
    in.push_back({&received[static_cast<std::size_t>(peer)], 1, peer});
  }
  world.exchange_many(out, in, "looking for transports");
  world.barrier("looking for transports");
}

}  // namespace

std::vector<std::string> transport_lines(std::span<const TransportView> views,
                                         std::span<const std::string> components,
                                         std::span<const std::array<int, 2>> pairs) {
  struct Group {
    std::set<std::string> places, addresses;
  };
  std::map<std::pair<bool, std::string>, Group> groups;  // (between hosts, transport)
  for (const auto& [i, j] : pairs) {
    const TransportView &one = views[static_cast<std::size_t>(i)],
                        &other = views[static_cast<std::size_t>(j)];
    const Found found = transport_of(one, other, components);
    const bool between = one.host != other.host;
    Group& group = groups[{between, found.transport}];
    group.places.insert(between ? fmt::format("{} and {}", one.host.data(), other.host.data())
                                : std::string(one.host.data()));
    if (between && !found.addresses.empty()) group.addresses.insert(found.addresses);
  }
  std::vector<std::string> lines;
  for (const auto& [key, group] : groups) {
    const auto& [between, transport] = key;
    std::string line =
        fmt::format("{} {}: {}", between ? "between" : "within", name_list(group.places, kShown), transport);
    if (group.addresses.size() == 1) line += fmt::format(" ({})", *group.addresses.begin());
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> describe_transports(Communicator& world, const std::vector<std::string>& hosts) {
  if (world.size() == 1) return {};
  const std::vector<std::array<int, 2>> pairs = pairs_to_look_at(hosts);
  touch(world, pairs);
  const TransportView mine = look_at_own_transports();
  std::vector<TransportView> views(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof mine, views.data(), "transports of all ranks");
  return transport_lines(views, loaded_mpi_components(), pairs);
}

}  // namespace lockstep
