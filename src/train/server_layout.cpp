// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_layout.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "config/option.h"
#include "core/error.h"
#include "core/range.h"
#include "train/cluster_tasks.h"

namespace lockstep {

namespace {

using Options = ClusterOptions;

constexpr ParamSpec kTable[] = {
    option<&Options::servers>(
        "ps", "0", between(0, 100000),
        "Parameter servers: so many ranks, the last ones unless tasks says otherwise, hold the variables and "
        "update them; the others compute. 0: every rank does both.",
        Change::free),
    option<&Options::staleness>("staleness", "0", between(0, 64),
                                "How many of the latest updates the variables lack with which a gradient is "
                                "computed, at most. Workers that are ahead go on instead of waiting. 0: "
                                "none, with the bits of training without servers."),
    option<&Options::meet_every_steps>(
        "meet_every_steps", "null", between(1, 1e9).or_null(),
        "All ranks meet after every this many steps, and at the ends of epochs: hooks run there (summaries, "
        "evaluations, checkpoints). Intervals of hooks are multiples of it. null: 1 without staleness, 10 "
        "with it."),
    option<&Options::placement>("placement", "greedy", one_of("greedy|round_robin"),
                                "Which server holds a variable. greedy: the one with the fewest bytes so "
                                "far. round_robin: one after the other.",
                                Change::free),
    option<&Options::parts>("parts", "null", between(1, 1e6).or_null(),
                            "At least so many parts of a batch, which workers take one after the other. "
                            "null: chosen, at least two per worker.",
                            Change::free),
    option<&Options::worker_delay_steps>(
        "worker_delay_steps", "0", between(0, 1e9, "steps"),
        "Worker i begins at step K ln(i + 1), or at the next meeting after it, where K is this number: few "
        "workers begin a run, while variables change fast. 0: all begin at once. The result is the same.",
        Change::free),
    {"places", ParamType::node, "null", in_words("map or null"),
     "Variables that a certain server holds, before placement: {\"logits/*\": 0}, a pattern of names and the "
     "index of the server from 0 on. The first pattern that matches counts.",
     Change::free},
    {"tasks", ParamType::node, "null", in_words("map, TF_CONFIG or null"),
     "Which rank is which task: {chief: [n01], worker: [n02, n03], ps: [n04]}, jobs with the address of each "
     "task. An address is a host, with or without a port, whose ranks are taken in order, or a rank: "
     "\"rank:3\". TF_CONFIG: as the environment variable of this name says. null: the last ranks are "
     "servers.",
     Change::free},
    option<&Options::aggregate>(
        "aggregate", "null", between(1, 1e6).or_null(),
        "The update of a step is made of the first so many of its parts; later ones are dropped. null: all. "
        "With it, the result depends on which parts are first."),
};

}  // namespace

std::span<const ParamSpec> cluster_table() { return kTable; }

ClusterOptions cluster_options(const Params& section) {
  auto options = section.as<ClusterOptions>();
  if (tasks_are_in_tf_config(section)) return options;  // the number of servers is not known yet
  if (const ClusterDescription tasks = tasks_of_section(section); tasks.given()) take_tasks(options, tasks);
  placement_rules(section);
  // A configuration as it was run has all keys.
  refuse_without_servers(section, options);
  return options;
}

namespace {

/// The variables with a dense gradient, in the order of their offsets.
std::vector<VariableToPlace> variables_to_place(const VariableStore& variables) {
  const std::vector<std::int64_t> cuts = variables.cut_points();
  std::vector<VariableToPlace> found(cuts.size() - 1);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    found[i].bytes = (cuts[i + 1] - cuts[i]) * static_cast<std::int64_t>(sizeof(float));
  for (const Variable& variable : variables.variables()) {
    if (!variable.trainable || variable.sparse_index >= 0) continue;
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(cuts, variable.offset) - cuts.begin());
    found[at].name = variable.name;
    found[at].shape = variable.shape;
  }
  return found;
}

}  // namespace

std::vector<int> server_places(const ClusterOptions& options, const VariablePlacement& placement,
                               const VariableStore& variables) {
  const std::vector<VariableToPlace> all = variables_to_place(variables);
  for (const PlacementRule& rule : placement.rules)
    if (std::ranges::none_of(all, [&](const auto& v) { return rule.variables.matches(v.name); }))
      throw Error(ErrorKind::config,
                  fmt::format("cluster.places: no trainable variable matches '{}'", rule.variables.text()),
                  rule.where,
                  advice_for_pattern(rule.variables.text()) + "`lockstep check` names the layers.");
  DeviceFunction strategy = placement.device_fn;
  if (!strategy)
    strategy = options.placement == ClusterOptions::Placement::greedy
                   ? greedy_load_balancing_strategy(options.servers)
                   : round_robin_strategy(options.servers);
  return place_variables(
      all, options.servers,
      replica_device_setter(
          {.ps_tasks = options.servers, .strategy = std::move(strategy), .rules = placement.rules}));
}

std::vector<std::int64_t> server_bytes(std::span<const int> places, int servers,
                                       const VariableStore& variables) {
  const std::vector<std::int64_t> cuts = variables.cut_points();
  std::vector<std::int64_t> held(static_cast<std::size_t>(servers));
  for (std::size_t i = 0; i < places.size(); ++i)
    held[static_cast<std::size_t>(places[i])] +=
        (cuts[i + 1] - cuts[i]) * static_cast<std::int64_t>(sizeof(float));
  return held;
}

std::string servers_text(const ClusterOptions& options, const VariableStore& variables,
                         std::span<const int> places, bool by_program) {
  const std::vector<std::int64_t> all = server_bytes(places, options.servers, variables);
  std::vector<std::string> kilobytes;
  for (const std::int64_t bytes : all)
    kilobytes.push_back(fmt::format("{:.4g}", static_cast<double>(bytes) * 1e-3));
  std::string held = fmt::format("{}", fmt::join(kilobytes, ", "));
  if (kilobytes.size() > 8) {
    const auto [least, most] = std::ranges::minmax(all);
    held =
        fmt::format("{:.4g} to {:.4g}", static_cast<double>(least) * 1e-3, static_cast<double>(most) * 1e-3);
  }
  std::string text = fmt::format(
      "{} server{} with {} kB of variables ({}); staleness {}; ranks meet every {}", options.servers,
      options.servers == 1 ? "" : "s", held,
      by_program                                               ? "by the program"
      : options.placement == ClusterOptions::Placement::greedy ? "greedy"
                                                               : "round_robin",
      options.staleness, options.meeting() == 1 ? "step" : fmt::format("{} steps", options.meeting()));
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

int ServerLayout::server_of(int rank) const {
  const auto found = std::ranges::find(server_ranks, rank);
  return found == server_ranks.end() ? -1 : static_cast<int>(found - server_ranks.begin());
}

void check_workers(const ClusterOptions& options, int ranks) {
  if (options.servers < ranks || ranks == 1) return;
  throw Error(ErrorKind::config,
              fmt::format("cluster.ps: {} of {} ranks are servers, and none is left to compute",
                          options.servers, ranks),
              "", fmt::format("Start at least {} ranks, or set cluster.ps=0.", options.servers + 1));
}

ServerLayout server_layout(const ClusterOptions& options, const VariableStore& variables,
                           std::vector<int> server_ranks, std::vector<int> places, int ranks, int shards,
                           int threads) {
  ServerLayout layout{.ranks = ranks,
                      .servers = options.servers,
                      .shards = shards,
                      .server_ranks = std::move(server_ranks),
                      .places = std::move(places),
                      .ownership = nullptr};
  layout.part_shards = shards_per_part(shards, layout.workers(), threads, options.parts);
  const std::vector<std::int64_t> cuts = variables.cut_points();
  std::vector<Range> ranges;
  std::vector<int> owners;
  for (std::size_t i = 0; i < layout.places.size(); ++i) {
    const int owner = layout.server_rank(layout.places[i]);
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
