// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_layout.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"ps", integer, "0", "[0, 100000]",
     "Parameter servers: so many ranks, the last ones, hold the variables and update them; the others "
     "compute. 0: every rank does both.",
     Change::free},
    {"staleness", integer, "0", "[0, 64]",
     "How many of the latest updates the variables lack with which a gradient is computed, at most. Workers "
     "that are ahead go on instead of waiting. 0: none, with the bits of training without servers."},
    {"meet_every_steps", integer, "null", "[1, 1e9] or null",
     "All ranks meet after every this many steps, and at the ends of epochs: hooks run there (summaries, "
     "evaluations, checkpoints). Intervals of hooks are multiples of it. null: 1 without staleness, 10 with "
     "it."},
    {"placement", string, "greedy", "greedy|round_robin",
     "Which server holds a variable. greedy: the one with the fewest bytes so far. round_robin: one after "
     "the other.",
     Change::free},
    {"parts", integer, "null", "[1, 1e6] or null",
     "At least so many parts of a batch, which workers take one after the other. null: chosen, at least two "
     "per worker.",
     Change::free},
    {"aggregate", integer, "null", "[1, 1e6] or null",
     "The update of a step is made of the first so many of its parts; later ones are dropped. null: all. "
     "With it, the result depends on which parts are first."},
};

template <typename Integer>
std::optional<Integer> narrow(std::optional<std::int64_t> value) {
  return value ? std::optional(static_cast<Integer>(*value)) : std::nullopt;
}

}  // namespace

std::span<const ParamSpec> cluster_table() { return kTable; }

ClusterOptions cluster_options(const Params& section) {
  ClusterOptions options{.servers = static_cast<int>(section.integer("ps")),
                         .staleness = static_cast<int>(section.integer("staleness")),
                         .meet_every_steps = section.optional_integer("meet_every_steps"),
                         .placement = section.string("placement") == "greedy"
                                          ? ClusterOptions::Placement::greedy
                                          : ClusterOptions::Placement::round_robin,
                         .parts = narrow<int>(section.optional_integer("parts")),
                         .aggregate = narrow<int>(section.optional_integer("aggregate"))};
  // A configuration as it was run has all keys.
  const auto refuse_without = [&](bool set, const char* key) {
    if (set && !options.used())
      throw section.error(key, "has no effect without servers", "Set cluster.ps to 1 or more.");
  };
  refuse_without(options.staleness > 0, "staleness");
  refuse_without(options.meet_every_steps.has_value(), "meet_every_steps");
  refuse_without(options.parts.has_value(), "parts");
  refuse_without(options.aggregate.has_value(), "aggregate");
  return options;
}

std::vector<int> place_variables(std::span<const std::int64_t> bytes, int servers,
                                 ClusterOptions::Placement placement) {
  std::vector<std::int64_t> held(static_cast<std::size_t>(servers));
  std::vector<int> places;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto place = placement == ClusterOptions::Placement::greedy
                           ? std::ranges::min_element(held) - held.begin()
                           : static_cast<std::ptrdiff_t>(i) % servers;
    held[static_cast<std::size_t>(place)] += bytes[i];
    places.push_back(static_cast<int>(place));
  }
  return places;
}

namespace {

/// Bytes of the dense variables, in the order of their offsets.
std::vector<std::int64_t> bytes_between(std::span<const std::int64_t> cuts) {
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    bytes.push_back((cuts[i + 1] - cuts[i]) * static_cast<std::int64_t>(sizeof(float)));
  return bytes;
}

}  // namespace

std::vector<std::int64_t> server_bytes(const ClusterOptions& options, const VariableStore& variables) {
  const std::vector<std::int64_t> bytes = bytes_between(variables.cut_points());
  const std::vector<int> places = place_variables(bytes, options.servers, options.placement);
  std::vector<std::int64_t> held(static_cast<std::size_t>(options.servers));
  for (std::size_t i = 0; i < bytes.size(); ++i) held[static_cast<std::size_t>(places[i])] += bytes[i];
  return held;
}

std::string servers_text(const ClusterOptions& options, const VariableStore& variables) {
  std::vector<std::string> kilobytes;
  for (const std::int64_t bytes : server_bytes(options, variables))
    kilobytes.push_back(fmt::format("{:.4g}", static_cast<double>(bytes) * 1e-3));
  std::string held = fmt::format("{}", fmt::join(kilobytes, ", "));
  if (kilobytes.size() > 8) {
    const auto [least, most] = std::ranges::minmax(server_bytes(options, variables));
    held =
        fmt::format("{:.4g} to {:.4g}", static_cast<double>(least) * 1e-3, static_cast<double>(most) * 1e-3);
  }
  std::string text = fmt::format(
      "{} server{} with {} kB of variables ({}); staleness {}; ranks meet every {}", options.servers,
      options.servers == 1 ? "" : "s", held,
      options.placement == ClusterOptions::Placement::greedy ? "greedy" : "round_robin", options.staleness,
      options.meeting() == 1 ? "step" : fmt::format("{} steps", options.meeting()));
  if (options.aggregate) text += fmt::format("; an update takes the first {} parts", *options.aggregate);
  return text;
}

int shards_per_part(int shards, int workers, int threads, std::optional<int> parts) {
  const int wanted = parts.value_or(2 * workers);
  int size = 1;
  while (shards % (2 * size) == 0 && shards / (2 * size) >= wanted) size *= 2;
  if (!parts)
    while (size < threads && shards % (2 * size) == 0 && shards / (2 * size) >= workers) size *= 2;
  return size;
}

std::int64_t ServerLayout::elements(int rank) const {
  std::int64_t elements = 0;
  for (const Range& part : ownership->parts(rank)) elements += part.size();
  return elements;
}

ServerLayout server_layout(const ClusterOptions& options, const VariableStore& variables, int ranks,
                           int shards, int threads) {
  if (options.servers >= ranks)
    throw Error(ErrorKind::config,
                ranks == 1
                    ? "cluster.ps needs more than one rank: servers hold the variables for workers"
                    : fmt::format("cluster.ps: {} of {} ranks are servers, and none is left to compute",
                                  options.servers, ranks),
                "", fmt::format("Start at least {} ranks, or set cluster.ps=0.", options.servers + 1));
  ServerLayout layout{.ranks = ranks,
                      .servers = options.servers,
                      .shards = shards,
                      .part_shards = shards_per_part(shards, ranks - options.servers, threads, options.parts),
                      .ownership = nullptr};
  const std::vector<std::int64_t> cuts = variables.cut_points();
  const std::vector<int> places = place_variables(bytes_between(cuts), layout.servers, options.placement);
  std::vector<Range> ranges;
  std::vector<int> owners;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const int owner = layout.workers() + places[i];
    if (!owners.empty() && owners.back() == owner) {
      ranges.back().last = cuts[i + 1];
      continue;
    }
    ranges.push_back({cuts[i], cuts[i + 1]});
    owners.push_back(owner);
  }
  layout.ownership = std::make_shared<Ownership>(std::move(ranges), ranks, shards, owners);
  return layout;
}

}  // namespace lockstep
