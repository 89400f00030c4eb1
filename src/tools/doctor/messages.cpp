// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How fast messages travel between rank 0 and others: a rank of its own host, and one of each other host.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "comm/transport.h"
#include "tools/doctor/finding.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostPartners = 6;
constexpr double kSeconds = 0.12;  ///< of one measurement
constexpr std::size_t kLargeBytes = std::size_t{4} << 20;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// The ranks that rank 0 talks to.
std::vector<int> partners_of(const std::vector<std::string>& hosts) {
  std::vector<int> partners;
  std::vector<std::string> seen;
  for (std::size_t rank = 1; rank < hosts.size() && partners.size() < kMostPartners; ++rank)
    if (std::ranges::find(seen, hosts[rank]) == seen.end()) {
      seen.push_back(hosts[rank]);
      partners.push_back(static_cast<int>(rank));
    }
  return partners;
}

/// Both ranks. Seconds of a message of `bytes` bytes there and back, measured on rank 0; rank 0 says before
/// each round whether there is another one.
double round_trip(Communicator& world, int partner, std::size_t bytes) {
  std::vector<char> data(bytes, 1), other(bytes);
  const bool leads = world.rank() == 0;
  const auto once = [&] {
    if (leads) {
      world.send(data.data(), bytes, partner, "doctor: messages");
      world.receive(other.data(), bytes, partner, "doctor: messages");
    } else {
      world.receive(other.data(), bytes, 0, "doctor: messages");
      world.send(data.data(), bytes, 0, "doctor: messages");
    }
  };
  double best = 1e9;
  int rounds = 1;  // the first ones warm up
  const auto begin = Clock::now();
  while (rounds > 0) {
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i) once();
    best = std::min(best, since(start) / rounds);
    // Once more as many, twice as many, ...: the time of the next rounds is about known.
    std::int32_t next = since(begin) < kSeconds ? std::min(2 * rounds, 1000) : 0;
    if (leads)
      world.send(&next, sizeof(next), partner, "doctor: messages");
    else
      world.receive(&next, sizeof(next), 0, "doctor: messages");
    rounds = next;
  }
  return best;
}

}  // namespace

Findings check_messages(CommEnvironment& environment) {
  Communicator& world = environment.world();
  if (world.size() == 1)
    return {{Finding::State::absent, "messages", "one rank: none are sent (mpirun -n 2 lockstep doctor)"}};
  const std::vector<std::string>& hosts = environment.hosts();
  Findings findings;
  for (const int partner : partners_of(hosts)) {
    world.barrier("doctor: messages");
    if (world.rank() != 0 && world.rank() != partner) continue;
    const double latency = round_trip(world, partner, 8) / 2;
    const double bandwidth = static_cast<double>(kLargeBytes) / (round_trip(world, partner, kLargeBytes) / 2);
    if (world.rank() != 0) continue;
    const std::string& other = hosts[static_cast<std::size_t>(partner)];
    const bool near = other == hosts[0];
    Finding finding{Finding::State::good, "messages",
                    fmt::format("ranks 0 and {} ({}): {:.1f} us, {:.2f} GB/s", partner,
                                near ? "both on " + other : fmt::format("{} and {}", hosts[0], other),
                                1e6 * latency, bandwidth / 1e9)};
    if (near && bandwidth < 0.3e9) {
      finding.state = Finding::State::warning;
      finding.advice = "Slow within one host: shared memory is not used, or the ranks share a core.";
    } else if (!near && bandwidth < 0.1e9) {
      finding.state = Finding::State::warning;
      finding.advice =
          "About 1 Gbit/s or less: a step of a large model waits for the network. Is it the right interface? "
          "docs/hosts.md "
          "says how to choose one (btl_tcp_if_include); comm.compress halves the bytes.";
    } else if (latency > 1e-3) {
      finding.state = Finding::State::warning;
      finding.advice = "More than a millisecond: ranks wait for cores, or messages take a detour.";
    }
    findings.push_back(finding);
  }
  for (const std::string& line : describe_transports(world, hosts))
    findings.push_back({Finding::State::good, "transport", line});
  return findings;
}

}  // namespace lockstep
