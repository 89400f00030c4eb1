// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The time of a step with each gradient gating (optimizer.gating), compared with that of graph. The three
// take turns of some steps each, so that other load affects all of them; a ratio is that of neighbours in
// time.
//
//   [mpirun -n R] gating_bench [--nets mlp_adam,digits] [--batch N] [--shards N] [--threads N] [--overlap]
//                              [--bucket-mb X] [--rounds N] [--steps N]
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "comm/environment.h"
#include "core/timer.h"
#include "nets.h"
#include "support/tiny_run.h"

namespace lockstep {
namespace {

struct Arguments {
  std::vector<std::string> nets{"mlp_adam", "digits"};
  std::int64_t batch = 0, shards = 0;
  int threads = 1, rounds = 21, steps = 20;
  bool overlap = false;
  double bucket_mb = 25, bucket_first_mb = 1;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The value below which the share `of` of them lies.
double quantile(std::vector<double> values, double of) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(of * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Of a turn on the slowest rank, per step.
struct Turn {
  double wall = 0, processor = 0;
};

Turn turn(Communicator& world, Trainer& trainer, int steps) {
  const double processor = processor_seconds();
  const Timer timer;
  for (int i = 0; i < steps; ++i) trainer.minimize();
  const Turn mine{timer.seconds() / steps, (processor_seconds() - processor) / steps};
  std::vector<Turn> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof mine, all.data(), "bench");
  Turn slowest;
  for (const Turn& rank : all)
    slowest = {std::max(slowest.wall, rank.wall), std::max(slowest.processor, rank.processor)};
  return slowest;
}

void measure(Communicator& world, const Arguments& arguments, const BenchNet& net) {
  const int shards = static_cast<int>(arguments.shards > 0 ? arguments.shards : 2 * world.size());
  const std::int64_t batch = (arguments.batch > 0 ? arguments.batch : net.batch) * world.size();
  constexpr Gating kGatings[] = {Gating::graph, Gating::op, Gating::none};
  std::vector<std::unique_ptr<TinyRun>> runs;
  for (const Gating gating : kGatings) {
    runs.push_back(std::make_unique<TinyRun>(
        world,
        TinyRunOptions{.layers = net.layers(),
                       .optimizer = std::string(net.optimizer),
                       .features = net.features,
                       .samples = 4 * batch,
                       .batch_size = batch,
                       .shards = shards,
                       .threads = arguments.threads,
                       .classes = static_cast<int>(net.classes),
                       .overlap = arguments.overlap,
                       .gating = gating,
                       .bucket_first_bytes = static_cast<std::int64_t>(1e6 * arguments.bucket_first_mb),
                       .bucket_bytes = static_cast<std::int64_t>(1e6 * arguments.bucket_mb)}));
    turn(world, runs.back()->trainer(), 5);
  }
  std::vector<double> wall[3], processor[3];
  for (int round = 0; round < arguments.rounds; ++round) {
    Turn turns[3];
    for (int k = 0; k < 3; ++k) {  // another one begins each round
      const int i = (k + round) % 3;
      turns[i] = turn(world, runs[static_cast<std::size_t>(i)]->trainer(), arguments.steps);
    }
    for (int i = 0; i < 3; ++i) {
      wall[i].push_back(i == 0 ? turns[0].wall : turns[i].wall / turns[0].wall);
      processor[i].push_back(i == 0 ? turns[0].processor : turns[i].processor / turns[0].processor);
    }
  }
  if (world.rank() != 0) return;
  fmt::print("{:<10} {:>5} {:>6} {:>7} {:>9.3f} ms {:>9.3f} ms", net.name, world.size(), batch,
             runs.front()->num_buckets(), 1e3 * quantile(wall[0], 0.5), 1e3 * quantile(processor[0], 0.5));
  for (int i = 1; i < 3; ++i)
    for (const auto* ratios : {&wall[i], &processor[i]})
      fmt::print("  {:.3f} ({:.3f}-{:.3f})", quantile(*ratios, 0.5), quantile(*ratios, 0.25),
                 quantile(*ratios, 0.75));
  fmt::print("\n");
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("step times of optimizer.gating");
  app.add_option("--nets", arguments.nets)->delimiter(',');
  app.add_option("--batch", arguments.batch, "per rank");
  app.add_option("--shards", arguments.shards, "of the whole batch");
  app.add_option("--threads", arguments.threads);
  app.add_option("--rounds", arguments.rounds);
  app.add_option("--steps", arguments.steps, "of a turn");
  app.add_option("--bucket-mb", arguments.bucket_mb);
  app.add_option("--bucket-first-mb", arguments.bucket_first_mb);
  app.add_flag("--overlap", arguments.overlap);
  CLI11_PARSE(app, argc, argv);
  CommEnvironment environment;
  if (environment.world().rank() == 0)
    fmt::print("{:<10} {:>5} {:>6} {:>7} {:>12} {:>12}  {:<20}  {:<20}  {:<20}  {:<20}\n", "net", "ranks",
               "batch", "buckets", "graph", "processor", "op, wall / graph's", "op, processor", "none, wall",
               "none, processor");
  for (const std::string& name : arguments.nets) measure(environment.world(), arguments, find_net(name));
  environment.finalize();
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
