// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The cores that ranks may use, whether threads really run on them at the same time, and what memory gives.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>

#include "comm/share_text.h"
#include "core/buffer.h"
#include "core/cpu.h"
#include "core/thread_pool.h"
#include "run/setup/run_size.h"
#include "tools/doctor/finding.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSeconds = 0.3;  ///< of a measurement
constexpr std::size_t kArrayBytes = std::size_t{64} << 20;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Rounds of arithmetic that `threads` threads complete per second, all together.
double rounds_per_second(int threads) {
  ThreadPool pool(threads);
  std::atomic<std::int64_t> rounds{0};
  const auto begin = Clock::now();
  pool.run([&](int thread) {
    double x = 1.0 + thread;
    std::int64_t own = 0;
    while (since(begin) < kSeconds) {
      for (int i = 0; i < 20000; ++i) x = x * 1.0000001 + 1e-9;
      ++own;
    }
    rounds += own + (x < 0 ? 1 : 0);  // x is used
  });
  return static_cast<double>(rounds.load()) / since(begin);
}

/// Bytes that copies read and write per second, all threads together.
double copied_bytes_per_second(int threads) {
  ThreadPool pool(threads);
  const std::size_t count = kArrayBytes / sizeof(double) / static_cast<std::size_t>(threads);
  Buffer from(cpu_device(), kArrayBytes), to(cpu_device(), kArrayBytes);
  double* const source = static_cast<double*>(from.data());
  double* const target = static_cast<double*>(to.data());
  // Each thread touches its part first, so that it lies in memory near the thread.
  pool.run([&](int thread) {
    const std::size_t first = count * static_cast<std::size_t>(thread);
    std::fill(source + first, source + first + count, 1.0);
    std::fill(target + first, target + first + count, 0.0);
  });
  std::int64_t rounds = 0;
  const auto begin = Clock::now();
  do {
    pool.run([&](int thread) {
      const std::size_t first = count * static_cast<std::size_t>(thread);
      std::copy(source + first, source + first + count, target + first);
    });
    ++rounds;
  } while (since(begin) < kSeconds);
  return 2.0 * static_cast<double>(rounds) * static_cast<double>(count * sizeof(double)) * threads /
         since(begin);
}

int host_cores() { return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))); }

/// Cores that the control group grants (cpu.max); 0: no limit.
double granted_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  try {
    return std::stod(quota) / period;
  } catch (const std::exception&) {
    return 0;
  }
}

struct CoreNumbers {
  int allowed, of_host, threads, ranks_on_host;
  double speedup, granted, bytes_per_second;
};

std::vector<CoreNumbers> gather(Communicator& world, const CoreNumbers& mine, const char* what) {
  std::vector<CoreNumbers> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof(mine), all.data(), what);
  return all;
}

}  // namespace

Findings check_cores(CommEnvironment& environment) {
  Communicator& world = environment.world();
  const int on_host = place_on_host(environment).ranks;
  CoreNumbers mine{available_cores(), host_cores(), cores_per_rank(on_host), on_host, 1, granted_cores(), 0};
  world.barrier("doctor: cores");
  const double alone = rounds_per_second(1);
  world.barrier("doctor: cores");
  mine.speedup = rounds_per_second(mine.threads) / alone;
  const std::vector<CoreNumbers> all = gather(world, mine, "doctor: cores");
  const std::vector<std::string> cores = gather_texts(world, allowed_cores_text(), "doctor: cores");
  Findings findings;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const CoreNumbers& one = all[rank];
    Finding finding{
        Finding::State::good, "cores",
        fmt::format("rank {} ({}): {} of {} cores ({}), {}", rank, environment.hosts()[rank], one.allowed,
                    one.of_host, cores[rank],
                    one.threads == 1 ? std::string("1 thread")
                                     : fmt::format("{} threads, which do {:.2f} times the work of one",
                                                   one.threads, one.speedup))};
    if (one.allowed < one.of_host && one.allowed * one.ranks_on_host < one.of_host) {
      finding.state = Finding::State::warning;
      finding.advice = fmt::format(
          "The ranks of this host may use {} of its {} cores: start with mpirun --bind-to none, or --map-by "
          "slot:PE=N; with srun --cpus-per-task N; look at taskset.",
          one.allowed * one.ranks_on_host, one.of_host);
    } else if (one.granted > 0 && one.granted + 0.01 < one.threads * one.ranks_on_host) {
      finding.state = Finding::State::warning;
      finding.advice =
          fmt::format("The container grants {:.1f} cores: set threads to {}, or raise its limit.",
                      one.granted, std::max(1, static_cast<int>(one.granted / one.ranks_on_host)));
    } else if (one.threads > 1 && one.speedup < 0.6 * one.threads) {
      finding.state = Finding::State::warning;
      finding.advice =
          "Threads wait for cores: other processes use them (see top), or ranks share them (mpirun "
          "--report-bindings).";
    }
    findings.push_back(finding);
  }
  return findings;
}

Findings check_memory(CommEnvironment& environment) {
  Communicator& world = environment.world();
  const int on_host = place_on_host(environment).ranks;
  CoreNumbers mine{0, 0, cores_per_rank(on_host), on_host, 0, 0, 0};
  world.barrier("doctor: memory");
  mine.bytes_per_second = copied_bytes_per_second(mine.threads);
  const std::vector<CoreNumbers> all = gather(world, mine, "doctor: memory");
  Findings findings;
  std::vector<std::string> hosts;
  double slowest = 0, fastest = 0;
  for (std::size_t first = 0; first < all.size(); ++first) {
    const std::string& host = environment.hosts()[first];
    if (std::ranges::find(hosts, host) != hosts.end()) continue;
    hosts.push_back(host);
    double total = 0;
    for (std::size_t rank = first; rank < all.size(); ++rank)
      if (environment.hosts()[rank] == host) total += all[rank].bytes_per_second;
    slowest = hosts.size() == 1 ? total : std::min(slowest, total);
    fastest = std::max(fastest, total);
    findings.push_back({Finding::State::good, "memory",
                        fmt::format("{}: {:.1f} GB/s, all ranks of the host together", host, total / 1e9)});
  }
  if (slowest < 0.5 * fastest)
    findings.push_back(
        {Finding::State::warning, "memory", "hosts differ by more than a factor of two",
         "All ranks wait for the slowest: look for other processes on the slow host, or leave it out."});
  return findings;
}

}  // namespace lockstep
