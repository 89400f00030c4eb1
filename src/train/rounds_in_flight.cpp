// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/rounds_in_flight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <vector>

#include "train/branches.h"

namespace lockstep {

namespace {

constexpr std::size_t kNamed = 3;  ///< layers that the warning names

struct Synchronised {
  std::vector<std::string> whole;  ///< layers with statistics of the whole batch
  std::int64_t unit = 0;           ///< microshards that share statistics in the others; 0: no others
};

Synchronised synchronised(const Graph::Calls& calls) {
  Synchronised all;
  for (const Graph::Operation& operation : calls.operations) {
    if (operation.collective == nullptr) continue;
    const int group = operation.collective->collective_traits().group_size;
    if (group == 0)
      all.whole.push_back(operation.layer->name());
    else
      all.unit = std::lcm(std::max<std::int64_t>(all.unit, 1), std::int64_t{group});
  }
  return all;
}

}  // namespace

std::string shards_text(std::int64_t microshards, std::int64_t rounds) {
  const auto counted = [](std::int64_t n) { return fmt::format("{} shard{}", n, n == 1 ? "" : "s"); };
  if (rounds == 1) return counted(microshards);
  return fmt::format("{} microshards, {} rounds of {}", microshards, rounds, counted(microshards / rounds));
}

std::string in_flight_text(const Graph::Calls& calls, bool on_device, double megabytes,
                           std::int64_t microshards, std::optional<int> branches) {
  const Synchronised layers = synchronised(calls);
  if (layers.whole.empty() && layers.unit == 0) {
    if (!on_device) return "one microshard per thread is in flight";
    if (!branches) return fmt::format("up to {} are in flight", kMostBranches);
    return fmt::format("{} in flight: {:.2f} MB on one rank", *branches, megabytes * *branches);
  }
  if (!layers.whole.empty() || on_device)
    return fmt::format("all microshards of a rank are in flight: {:.2f} MB on one rank",
                       megabytes * static_cast<double>(microshards));
  const std::string unit = layers.unit == 1 ? "one microshard" : fmt::format("{} microshards", layers.unit);
  return fmt::format(
      "{} per thread in flight, {:.2f} MB, where each thread has whole groups; else all of a rank", unit,
      megabytes * static_cast<double>(layers.unit));
}

std::string rounds_save_nothing(const Graph::Calls& calls, bool on_device, std::int64_t rounds) {
  const Synchronised layers = synchronised(calls);
  if (rounds == 1 || (layers.whole.empty() && (layers.unit == 0 || !on_device))) return {};
  if (layers.whole.empty())
    return "train.accumulate saves no memory of activations: on a GPU all microshards of a rank are in "
           "flight "
           "where there are batch norms. group_norm and layer_norm need no statistics of other samples";
  const std::size_t named = std::min(layers.whole.size(), kNamed);
  const std::string more =
      layers.whole.size() > named ? fmt::format(" and {} more", layers.whole.size() - named) : std::string();
  return fmt::format(
      "train.accumulate saves no memory of activations: {}{} take statistics of the whole batch, so all "
      "microshards of a rank are in flight. {} frees the memory, with another result",
      fmt::join(layers.whole.begin(), layers.whole.begin() + static_cast<std::ptrdiff_t>(named), ", "), more,
      on_device ? "group_norm or layer_norm in their place"
                : "batch_norm: {group: 1} (statistics of each microshard), or group_norm in its place,");
}

}  // namespace lockstep
