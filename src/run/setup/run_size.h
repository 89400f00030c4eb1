// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How many microshards a run has and how many threads a rank uses.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/communicator.h"
#include "run/sections/config.h"
#include "run/setup/rank_place.h"

namespace lockstep {

/// Cores that this rank may count as its own.
int cores_per_rank(int ranks_on_host);
/// Compute threads of this rank: `threads` of the configuration, or the cores that it may use, shared among
/// the ranks of its host if nothing binds them; never more than its shards.
int choose_threads(const Config& config, bool is_chief, int ranks_on_host, int own_shards);
/// Microshards per global batch, of all rounds (train.accumulate) together: the configuration's, or the
/// checkpoint's, or the default of a first launch in each round (default_shards.h). Throws Error(config).
/// 0 of a checkpoint: weights of another program, which fit any number.
int choose_shards(const Config& config, std::optional<std::int64_t> from_checkpoint, int ranks);

struct RunSize {
  int shards = 0;   ///< microshards per global batch
  int threads = 1;  ///< of this rank
};
/// All ranks. Throws Error(config), the same on all, if there are more ranks than shards.
RunSize size_of_run(Communicator& world, const Config& config, const RankPlace& place,
                    std::optional<std::int64_t> shards_from_checkpoint);

}  // namespace lockstep
