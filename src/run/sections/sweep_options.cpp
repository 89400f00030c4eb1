// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/sweep_options.h"

#include <algorithm>
#include <cmath>

#include "config/yaml_node.h"
#include "session/run_names.h"

namespace lockstep {

namespace {

using enum ParamType;

// None of it changes what a run computes.
constexpr ParamSpec kTable[] = {
    {"method", string, "grid", one_of("grid|random|sobol|list"),
     "Which trials there are. grid: all combinations of the values of keys. random, sobol: points in the "
     "space "
     "of keys. list: those of list.",
     Change::free},
    {"keys", node, "null", in_words("map or null"),
     "The keys that differ between trials, as --set names them, each with a list of values or a range: "
     "{optimizer.learning_rate: {min: 0.0001, max: 0.1, scale: log}}.",
     Change::free},
    {"list", node, "null", in_words("list or null"), "list: a map {KEY: VALUE} for each trial.",
     Change::free},
    {"trials", integer, "null", between(1, 100000).or_null(), "random, sobol: the number of trials.",
     Change::free},
    {"seed", integer, "0", between(0, 9223372036854775807), "random, sobol: another seed gives other trials.",
     Change::free},
    {"metric",
     string,
     "loss",
     {},
     "What trials are compared by: loss, accuracy, or a metric of eval.metrics.",
     Change::free},
    {"mode", string, "null", one_of("min|max").or_null(),
     "Whether a smaller (min) or a larger (max) value is better. null: as the metric says, min for losses "
     "and errors, max for accuracies.",
     Change::free},
    {"halving", node, "null", in_words("map or null"),
     "Successive halving: trials stop in rungs, and only the best of a rung go on. null: all trials train to "
     "the end.",
     Change::free},
    {"groups", integer, "null", between(1, 65536).or_null(),
     "So many trials train at once, each on a part of the ranks; --groups of the command line comes first. "
     "null: as many as there are ranks.",
     Change::free},
};

constexpr ParamSpec kRange[] = {
    {"min", real, kRequired, between(-1e30, 1e30), "The smallest value.", Change::free},
    {"max", real, kRequired, between(-1e30, 1e30), "The largest value.", Change::free},
    {"scale", string, "linear", one_of("linear|log"),
     "linear: values are spread evenly. log: their logarithms are.", Change::free},
    {"type", string, "real", one_of("real|integer"), "integer: whole numbers only.", Change::free},
    {"points", integer, "null", between(2, 100000).or_null(), "grid: the number of values, with min and max.",
     Change::free},
};

constexpr ParamSpec kHalving[] = {
    {"first", integer, kRequired, between(1, 1e12, "steps or epochs"),
     "Where the first rung ends: a number of steps if train.steps is given, else of epochs. Each further "
     "rung "
     "ends factor times as late, the last one where the training ends.",
     Change::free},
    {"factor", integer, "3", between(2, 1000), "One in so many trials of a rung goes on to the next.",
     Change::free},
};

constexpr std::size_t kMostGridTrials = 100000;

std::string value_text(const Node& value) {
  std::string text = to_yaml(value);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

SweepKey key_of(const std::string& name, const Node& value, bool is_grid) {
  SweepKey key{.key = name};
  if (value.kind == Node::Kind::list) {
    for (const Node& item : value.items) key.values.push_back(value_text(item));
    if (key.values.empty())
      throw Error(ErrorKind::config, fmt::format("section sweep: {} has no values", name), value.where,
                  "Give at least one.");
    return key;
  }
  if (value.kind != Node::Kind::map) {
    key.values = {value_text(value)};
    return key;
  }
  const Params range(value, kRange, fmt::format("section sweep, range of {}", name));
  key.min = range.real("min");
  key.max = range.real("max");
  key.is_log = range.string("scale") == "log";
  key.is_whole = range.string("type") == "integer";
  key.points = range.optional_integer("points").value_or(0);
  if (!(key.min < key.max)) throw range.error("max", "is not above min", "Give a larger max.");
  if (key.is_log && !(key.min > 0))
    throw range.error("min", "has no logarithm", "Give a min above 0, or scale: linear.");
  if (key.is_whole && (key.min != std::floor(key.min) || key.max != std::floor(key.max)))
    throw range.error("type", "min and max of whole numbers are not whole", "Give whole numbers.");
  if (is_grid && key.points == 0)
    throw range.error("points", "a grid needs to know how many values of a range it takes",
                      "Give points, or a list of values.");
  if (!is_grid && key.points != 0)
    throw range.error("points", "belongs to a grid", "Leave it out, or give method: grid.");
  return key;
}

void read_keys(const Params& section, SweepOptions& options) {
  const Node& keys = section.node("keys");
  if (keys.kind != Node::Kind::map || keys.entries.empty())
    throw section.error("keys", "names no keys", "Write keys: {optimizer.learning_rate: [0.01, 0.001]}.");
  double combinations = 1;
  for (const auto& [name, value] : keys.entries) {
    options.keys.push_back(key_of(name, value, options.method == SweepOptions::Method::grid));
    const SweepKey& key = options.keys.back();
    combinations *= static_cast<double>(key.values.empty() ? key.points : std::ssize(key.values));
  }
  if (options.method == SweepOptions::Method::grid && combinations > kMostGridTrials)
    throw section.error("keys", fmt::format("the grid has {:.6g} trials", combinations),
                        fmt::format("Give at most {}, or method: random.", kMostGridTrials));
  if (options.method == SweepOptions::Method::sobol && options.keys.size() > kMostSobolKeys)
    throw section.error("keys", fmt::format("sobol has at most {} keys", kMostSobolKeys),
                        "Give method: random.");
}

void read_list(const Params& section, SweepOptions& options) {
  const Node& list = section.node("list");
  if (list.kind != Node::Kind::list || list.items.empty())
    throw section.error("list", "has no trials", "Write list: [{optimizer.learning_rate: 0.01}].");
  for (const Node& item : list.items) {
    if (item.kind != Node::Kind::map)
      throw Error(ErrorKind::config, "section sweep, list: a trial is no map", item.where,
                  "Write {KEY: VALUE}.");
    std::vector<KeySetting>& settings = options.list.emplace_back();
    for (const auto& [key, value] : item.entries) settings.push_back({key, value_text(value)});
  }
}

void refuse(const Params& section, std::string_view option, std::string_view method) {
  if (section.has(option))
    throw section.error(option, fmt::format("has no effect with method {}", method),
                        "Leave it out, or give another method.");
}

}  // namespace

std::string_view name_of(SweepOptions::Method method) {
  constexpr std::string_view kNames[] = {"grid", "random", "sobol", "list"};
  return kNames[static_cast<std::size_t>(method)];
}

std::span<const ParamSpec> sweep_table() { return kTable; }
std::span<const ParamSpec> sweep_range_table() { return kRange; }
std::span<const ParamSpec> sweep_halving_table() { return kHalving; }

SweepOptions sweep_options(const Params& section) {
  using enum SweepOptions::Method;
  const std::string& method = section.string("method");
  SweepOptions options{.method = method == "grid"     ? grid
                                 : method == "random" ? random
                                 : method == "sobol"  ? sobol
                                                      : list,
                       .seed = static_cast<std::uint64_t>(section.integer("seed")),
                       .metric = std::string(without_split(section.string("metric"))),
                       .mode = section.has("mode") ? direction_from(section.string("mode")) : Direction::none,
                       .groups = section.optional_integer("groups")};
  if (options.method == list) {
    refuse(section, "keys", method);
    read_list(section, options);
  } else {
    refuse(section, "list", method);
    read_keys(section, options);
  }
  if (options.method == random || options.method == sobol) {
    if (!section.has("trials"))
      throw section.error("trials", fmt::format("method {} needs the number of trials", method),
                          "Write trials: 20.");
    options.trials = section.integer("trials");
  } else {
    refuse(section, "trials", method);
    if (section.given("seed")) refuse(section, "seed", method);
  }
  if (const Node& halving = section.node("halving"); !is_null(halving)) {
    const Params params(halving, kHalving, "section sweep, halving");
    options.first = params.integer("first");
    options.factor = params.integer("factor");
  }
  return options;
}

}  // namespace lockstep
