// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "comm/tree.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/log.h"
#include "core/range.h"
#include "core/thread_ban.h"
#include "run/setup/default_shards.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostShards = 65536;

std::string counted(std::int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace

int cores_per_rank(int ranks_on_host) {
  const int mine = available_cores();
  // A CPU mask smaller than the machine is a launcher's binding for this rank; otherwise ranks share the
  // machine.
  const bool bound = mine < static_cast<int>(std::thread::hardware_concurrency()) && ranks_on_host > 1;
  return bound ? mine : std::max(1, mine / ranks_on_host);
}

int choose_threads(const Config& config, bool is_chief, int ranks_on_host, int own_shards) {
  const int threads =
      config.general.threads.value_or(ThreadBan::active() ? 1 : cores_per_rank(ranks_on_host));
  if (threads > own_shards && is_chief && config.general.threads)
    log_info(
        "using {} of {} threads per rank: a microshard is computed by one thread, and a rank has {} of them",
        own_shards, threads, own_shards);
  return std::max(1, std::min(threads, own_shards));
}

namespace {

/// Checks the rounds of a run that says nothing about shards.
int shards_without_option(const Config& config, std::optional<std::int64_t> from_checkpoint, int ranks) {
  const std::int64_t rounds = config.train.accumulate;
  if (!from_checkpoint)
    return static_cast<int>(rounds * std::min(default_shards(config.general.device != "cpu", ranks,
                                                             config.train.batch_size / rounds),
                                              kMostShards / rounds));
  if (*from_checkpoint % rounds != 0)
    throw config.error("train", "accumulate",
                       fmt::format("a batch of this run is cut into {}, which cannot be {} rounds",
                                   counted(*from_checkpoint, "microshard"), rounds),
                       "Leave accumulate as it was, or start a new run directory.");
  return static_cast<int>(*from_checkpoint);
}

}  // namespace

int choose_shards(const Config& config, std::optional<std::int64_t> from_checkpoint, int ranks) {
  if (from_checkpoint == 0) from_checkpoint.reset();  // weights of another program, which no run has begun
  const std::int64_t batch_size = config.train.batch_size, rounds = config.train.accumulate;
  if (rounds > batch_size)
    throw config.error(
        "train", "accumulate",
        fmt::format("a batch_size of {} has not enough samples for {} rounds", batch_size, rounds),
        "batch_size is the whole batch, of all rounds together: give a larger one, or fewer "
        "rounds.");
  if (!config.general.shards) return shards_without_option(config, from_checkpoint, ranks);
  const std::int64_t shards = *config.general.shards, all = shards * rounds;
  if (from_checkpoint && *from_checkpoint != all)
    throw config.error(
        "", "shards",
        rounds == 1 ? fmt::format("shards is {}, but the run began with {}", shards, *from_checkpoint)
                    : fmt::format("{} shards in {} rounds are {} microshards, but the run began "
                                  "with {}",
                                  shards, rounds, all, *from_checkpoint),
        "Leave shards and train.accumulate as they were (any number of ranks up to their product "
        "gives the same bits), or start a new run directory.");
  if (all > kMostShards)
    throw config.error(
        "train", "accumulate",
        fmt::format("{} rounds of {} shards are more than {} microshards", rounds, shards, kMostShards),
        "Give fewer rounds or fewer shards.");
  if (all > batch_size)
    throw rounds == 1
        ? config.error("", "shards",
                       fmt::format("{} shards are more than the batch_size of {}", shards, batch_size),
                       "Every microshard needs at least one sample of a batch.")
        : config.error(
              "train", "accumulate",
              fmt::format("a batch_size of {} has not enough samples for {} rounds of {} shards", batch_size,
                          rounds, shards),
              "Every microshard needs at least one sample, and batch_size is the whole batch, of all "
              "rounds together: give a larger one, fewer rounds, or fewer shards.");
  return static_cast<int>(all);
}

RunSize size_of_run(Communicator& world, const Config& config, const RankPlace& place,
                    std::optional<std::int64_t> shards_from_checkpoint) {
  const bool on_gpu = place.device.is_gpu();
  const int shards = choose_shards(config, shards_from_checkpoint, world.size());
  if (world.size() > shards && !config.general.shards && shards_from_checkpoint.value_or(0) == 0)
    throw config.error(
        "train", "batch_size",
        fmt::format("{} ranks are too many for a batch of {} in {}: every rank needs a sample", world.size(),
                    counted(config.train.batch_size, "sample"), counted(config.train.accumulate, "round")),
        fmt::format("Start at most {} ranks, or give a larger batch.", shards));
  if (world.size() > shards)
    throw Error(ErrorKind::config,
                fmt::format("{} ranks are too many: a batch is cut into {} shards, and every rank needs one",
                            world.size(), shards),
                config.section("").where("shards"),
                fmt::format("Start at most {} ranks, or begin a new run with more shards.", shards));
  const Range own = shards_of_rank(world.rank(), world.size(), shards);
  return {shards, on_gpu ? 1  // it only submits work to the GPU
                         : choose_threads(config, world.rank() == 0, place.ranks_on_host,
                                          static_cast<int>(own.size()))};
}

}  // namespace lockstep
