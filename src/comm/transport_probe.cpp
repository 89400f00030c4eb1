// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/transport_probe.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <link.h>
#include <mpi.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/cpu.h"

namespace lockstep {

namespace {

bool read_address(const sockaddr_storage& from, std::array<std::uint8_t, 16>& address, std::uint16_t& port,
                  std::uint8_t& is_ipv6) {
  if (from.ss_family == AF_INET) {
    sockaddr_in ipv4;
    std::memcpy(&ipv4, &from, sizeof ipv4);
    std::memcpy(address.data(), &ipv4.sin_addr, 4);
    port = ntohs(ipv4.sin_port);
    is_ipv6 = 0;
    return true;
  }
  if (from.ss_family != AF_INET6) return false;
  sockaddr_in6 ipv6;
  std::memcpy(&ipv6, &from, sizeof ipv6);
  std::memcpy(address.data(), &ipv6.sin6_addr, 16);
  port = ntohs(ipv6.sin6_port);
  is_ipv6 = 1;
  return true;
}

/// Sets the interface of each connection: the one with its local address.
void find_interfaces(TransportView& view) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    sockaddr_storage storage{};
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::memcpy(&storage, one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    std::array<std::uint8_t, 16> address{};
    std::uint16_t port = 0;
    std::uint8_t is_ipv6 = 0;
    if (!read_address(storage, address, port, is_ipv6)) continue;
    for (int i = 0; i < view.num_tcp; ++i)
      if (TcpEnd& end = view.tcp[static_cast<std::size_t>(i)]; end.is_ipv6 == is_ipv6 && end.local == address)
        std::strncpy(end.interface.data(), one->ifa_name, end.interface.size() - 1);
  }
  ::freeifaddrs(all);
}

void find_connections(TransportView& view) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", failed)) {
    const std::string name = entry.path().filename().string();
    int descriptor = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), descriptor).ec != std::errc()) continue;
    int type = 0;
    socklen_t length = sizeof type;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) continue;
    sockaddr_storage local{}, remote{};
    length = sizeof local;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &length) != 0) continue;
    length = sizeof remote;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&remote), &length) != 0) continue;
    if (view.num_tcp == TransportView::kTcpEnds) return;
    TcpEnd end;
    std::uint8_t remote_is_ipv6 = 0;
    if (!read_address(local, end.local, end.local_port, end.is_ipv6) ||
        !read_address(remote, end.remote, end.remote_port, remote_is_ipv6))
      continue;
    view.tcp[static_cast<std::size_t>(view.num_tcp++)] = end;
  }
}

/// Open MPI's shared memory (btl vader): each rank has a segment .../vader_segment.<host>.<user>.<job>.<local
/// rank>, which other ranks map when they first send to it.
void find_segments(TransportView& view) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find("/vader_segment.");
    if (at == std::string::npos) continue;
    std::string name = line.substr(at);
    name = name.substr(0, name.find(' '));
    int local_rank = -1;
    const std::size_t dot = name.rfind('.');
    std::from_chars(name.data() + dot + 1, name.data() + name.size(), local_rank);
    if (local_rank >= 0 && local_rank < TransportView::kLocalRanks)
      view.shared[static_cast<std::size_t>(local_rank)] = 1;
  }
}

std::optional<int> integer_of_mpi_control(const std::string& wanted) {
  int count = 0;
  if (MPI_T_cvar_get_num(&count) != MPI_SUCCESS) return std::nullopt;
  for (int i = 0; i < count; ++i) {
    std::array<char, 128> name{}, text{};
    int name_length = static_cast<int>(name.size()), text_length = static_cast<int>(text.size());
    int verbosity = 0, bind = 0, scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum kind = MPI_T_ENUM_NULL;
    if (MPI_T_cvar_get_info(i, name.data(), &name_length, &verbosity, &type, &kind, text.data(), &text_length,
                            &bind, &scope) != MPI_SUCCESS ||
        name.data() != wanted || type != MPI_INT)
      continue;
    MPI_T_cvar_handle handle;
    int value = 0, elements = 0;
    if (MPI_T_cvar_handle_alloc(i, nullptr, &handle, &elements) != MPI_SUCCESS) return std::nullopt;
    const bool read = elements == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS;
    MPI_T_cvar_handle_free(&handle);
    if (read) return value;
  }
  return std::nullopt;
}

}  // namespace

TransportView look_at_own_transports() {
  TransportView view;
  std::strncpy(view.host.data(), host_name().c_str(), view.host.size() - 1);
  if (const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK")) view.local_rank = std::atoi(local);
  find_connections(view);
  find_interfaces(view);
  find_segments(view);
  return view;
}

std::vector<std::string> loaded_mpi_components() {
  std::vector<std::string> found;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        std::string name = std::filesystem::path(info->dlpi_name).stem().string();  // mca_btl_tcp
        for (const char* framework : {"pml", "mtl", "btl"})
          if (const std::string prefix = fmt::format("mca_{}_", framework); name.starts_with(prefix))
            static_cast<std::vector<std::string>*>(to)->push_back(
                fmt::format("{} {}", framework, name.substr(prefix.size())));
        return 0;
      },
      &found);
  std::ranges::sort(found);
  return found;
}

std::optional<double> launcher_notices_after_seconds() {
  if (std::getenv("OMPI_MCA_orte_hnp_uri") == nullptr) return std::nullopt;
  // Open MPI 4.1 takes the level that is asked for here as that of all of MPI, from now on: with another one
  // it would leave out its locks, or say so to the program around.
  int level = 0, given = 0;
  if (MPI_Query_thread(&level) != MPI_SUCCESS || MPI_T_init_thread(level, &given) != MPI_SUCCESS)
    return std::nullopt;
  const auto time = integer_of_mpi_control("oob_tcp_keepalive_time"),
             interval = integer_of_mpi_control("oob_tcp_keepalive_intvl"),
             probes = integer_of_mpi_control("oob_tcp_keepalive_probes");
  MPI_T_finalize();
  if (!time || !interval || !probes) return std::nullopt;
  return static_cast<double>(*time) + static_cast<double>(*interval) * *probes;
}

bool is_launcher_on_this_host() {
  const char* const launcher = std::getenv("OMPI_MCA_orte_hnp_uri");
  const char* const daemon = std::getenv("OMPI_MCA_orte_local_daemon_uri");
  return launcher != nullptr && daemon != nullptr && std::strcmp(launcher, daemon) == 0;
}

}  // namespace lockstep
