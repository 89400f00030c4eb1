// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/default_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace lockstep {

namespace {

constexpr unsigned kDefaultShards = 8;

}  // namespace

std::int64_t default_shards(bool on_gpu, int ranks, std::int64_t samples) {
  const auto started = static_cast<unsigned>(ranks);
  return std::min<std::int64_t>(on_gpu ? started : std::max(kDefaultShards, std::bit_ceil(started)), samples);
}

std::string default_shards_text(const Config& config, std::int64_t microshards, std::int64_t threads) {
  if (config.general.shards) return {};
  const std::int64_t rounds = config.train.accumulate, shards = microshards / rounds;
  if (config.general.device != "cpu")
    return fmt::format(
        "shards is {} by default, the ranks of this first launch: the run may use up to {} GPUs, and another "
        "number of shards has other bits",
        shards, microshards);
  std::string text = fmt::format(
      "shards is {} by default, on any machine: up to {} ranks x threads can compute, with the same bits",
      shards, microshards);
  if (const std::int64_t could = std::min(threads, config.train.batch_size); could > microshards)
    text += fmt::format("; {} threads are here, which a new run with shards: {} uses", threads,
                        (could + rounds - 1) / rounds);
  return text;
}

}  // namespace lockstep
