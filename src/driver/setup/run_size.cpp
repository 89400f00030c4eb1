// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/run_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/cpu.h"
#include "core/log.h"

namespace lockstep {

int cores_per_rank(int ranks_on_host) {
  const int mine = available_cores();
  // A CPU mask smaller than the machine is a launcher's binding for this rank; otherwise ranks share the
  // machine.
  const bool bound = mine < static_cast<int>(std::thread::hardware_concurrency()) && ranks_on_host > 1;
  return bound ? mine : std::max(1, mine / ranks_on_host);
}

int choose_threads(const Config& config, bool is_chief, int ranks_on_host, int own_shards) {
  const int threads = config.general.threads.value_or(cores_per_rank(ranks_on_host));
  if (threads > own_shards && is_chief && config.general.threads)
    log_info(
        "using {} of {} threads per rank: a microshard is computed by one thread, and a rank has {} of them",
        own_shards, threads, own_shards);
  return std::max(1, std::min(threads, own_shards));
}

int choose_shards(const Config& config, std::optional<std::int64_t> from_checkpoint, int total_cores) {
  const std::int64_t batch_size = config.train.batch_size;
  if (!config.general.shards)
    return static_cast<int>(from_checkpoint.value_or(std::min<std::int64_t>(total_cores, batch_size)));
  const std::int64_t shards = *config.general.shards;
  if (from_checkpoint && *from_checkpoint != shards)
    throw config.error("", "shards",
                       fmt::format("shards is {}, but the run began with {}", shards, *from_checkpoint),
                       "Leave shards as it was (any number of ranks up to it gives the same bits), or start "
                       "a new run directory.");
  if (shards > batch_size)
    throw config.error("", "shards",
                       fmt::format("{} shards are more than the batch_size of {}", shards, batch_size),
                       "Every microshard needs at least one sample of a batch.");
  return static_cast<int>(shards);
}

}  // namespace lockstep
