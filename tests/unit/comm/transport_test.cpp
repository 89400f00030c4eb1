// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/transport.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "comm/self_communicator.h"
#include "comm/transport_probe.h"
#include "core/cpu.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TransportView view(const char* host, int local_rank) {
  TransportView made;
  std::strncpy(made.host.data(), host, made.host.size() - 1);
  made.local_rank = local_rank;
  return made;
}

std::array<std::uint8_t, 16> ipv4(int a, int b, int c, int d) {
  std::array<std::uint8_t, 16> address{};
  const int bytes[] = {a, b, c, d};
  for (std::size_t i = 0; i < 4; ++i) address[i] = static_cast<std::uint8_t>(bytes[i]);
  return address;
}

/// Adds both ends of one connection.
void connect(TransportView& one, const std::array<std::uint8_t, 16>& one_address, TransportView& other,
             const std::array<std::uint8_t, 16>& other_address, const char* interface = "eth0") {
  static std::uint16_t port = 40000;
  TcpEnd end;
  end.local = one_address;
  end.remote = other_address;
  end.local_port = ++port;
  end.remote_port = 1024;
  std::strncpy(end.interface.data(), interface, end.interface.size() - 1);
  one.tcp[static_cast<std::size_t>(one.num_tcp++)] = end;
  std::swap(end.local, end.remote);
  std::swap(end.local_port, end.remote_port);
  other.tcp[static_cast<std::size_t>(other.num_tcp++)] = end;
}

const std::vector<std::string> kOb1 = {"btl self", "btl tcp", "btl vader", "pml ob1"};

TEST(Transport, TcpNeedsBothEndsOfAConnection) {
  std::vector<TransportView> views = {view("a", 0), view("b", 0)};
  connect(views[0], ipv4(10, 0, 0, 1), views[1], ipv4(10, 0, 0, 2), "ib0");
  const std::array<int, 2> pairs[] = {{0, 1}};
  EXPECT_THAT(transport_lines(views, kOb1, pairs),
              ElementsAre("between a and b: TCP over ib0 (10.0.0.1 - 10.0.0.2)"));
  // A connection to another process, such as the launcher, does not count.
  views[1].tcp[0].remote_port = 1;
  EXPECT_THAT(transport_lines(views, kOb1, pairs),
              ElementsAre("between a and b: not known (btl self, btl tcp, btl vader, pml ob1)"));
}

TEST(Transport, LoopbackIsLocalToAHost) {
  std::vector<TransportView> views = {view("a", 0), view("a", 1), view("b", 0), view("b", 1)};
  connect(views[0], ipv4(127, 0, 0, 1), views[1], ipv4(127, 0, 0, 1), "lo");
  views[3].tcp[0] = views[1].tcp[0];  // the same numbers on another host
  views[3].num_tcp = 1;
  const std::array<int, 2> pairs[] = {{0, 1}, {0, 3}};
  EXPECT_THAT(transport_lines(views, {}, pairs),
              ElementsAre("within a: TCP over lo", "between a and b: not known"));
}

TEST(Transport, MappedSegmentsMeanSharedMemory) {
  std::vector<TransportView> views = {view("a", 0), view("a", 1), view("b", 0), view("b", 1)};
  views[0].shared[1] = views[3].shared[0] = 1;
  const std::array<int, 2> pairs[] = {{0, 1}, {2, 3}, {1, 2}};
  EXPECT_THAT(transport_lines(views, {}, pairs),
              ElementsAre("within a, b: shared memory", "between a and b: not known"));
  views[0].shared[1] = 0;
  const std::array<int, 2> first[] = {{0, 1}};
  EXPECT_THAT(transport_lines(views, kOb1, first), ElementsAre("within a: probably shared memory"));
}

TEST(Transport, ComponentNamesTheFabric) {
  const std::vector<TransportView> views = {view("a", 0), view("b", 0)};
  const std::array<int, 2> pairs[] = {{0, 1}};
  const auto line = [&](const char* component) {
    return transport_lines(views, std::vector<std::string>{component}, pairs).front();
  };
  EXPECT_THAT(line("pml ucx"), testing::HasSubstr("between a and b: UCX, which selects"));
  EXPECT_EQ(line("mtl psm2"), "between a and b: Omni-Path (PSM2)");
  EXPECT_EQ(line("mtl ofi"), "between a and b: libfabric (OFI)");
}

TEST(Transport, ManyHostsMakeOneLine) {
  std::vector<TransportView> views;
  std::vector<std::array<int, 2>> pairs;
  for (int i = 0; i < 8; ++i) views.push_back(view(fmt::format("n{}", i).c_str(), 0));
  for (int i = 0; i < 8; ++i)
    for (int j = i + 1; j < 8; ++j) {
      connect(views[static_cast<std::size_t>(i)], ipv4(10, 0, 0, i), views[static_cast<std::size_t>(j)],
              ipv4(10, 0, 0, j));
      pairs.push_back({i, j});
    }
  EXPECT_THAT(transport_lines(views, kOb1, pairs),
              ElementsAre("between n0 and n1, n0 and n2, n0 and n3, n0 and n4 and 24 more: TCP over eth0"));
}

/// A real connection of this process to itself, over the loopback interface.
TEST(Transport, FindsOwnConnectionsAndInterfaces) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&address), length), 0);
  const int server = ::accept(listener, nullptr, nullptr);
  ASSERT_GE(server, 0);

  const TransportView mine = look_at_own_transports();
  EXPECT_EQ(mine.host.data(), host_name());
  ASSERT_EQ(mine.num_tcp, 2);
  for (int i = 0; i < 2; ++i) EXPECT_STREQ(mine.tcp[static_cast<std::size_t>(i)].interface.data(), "lo");
  const std::array<TransportView, 2> both{mine, mine};
  const std::array<int, 2> pairs[] = {{0, 1}};
  EXPECT_THAT(transport_lines(both, {}, pairs),
              ElementsAre(fmt::format("within {}: TCP over lo", host_name())));
  for (const int descriptor : {server, client, listener}) ::close(descriptor);
}

TEST(Transport, OneRankHasNoTransport) {
  SelfCommunicator self;
  EXPECT_THAT(describe_transports(self, {"a"}), IsEmpty());
}

}  // namespace
}  // namespace lockstep
