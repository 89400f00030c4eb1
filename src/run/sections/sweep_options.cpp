// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/sweep_options.h"

#include <algorithm>
#include <cmath>

#include "config/option.h"
#include "config/yaml_node.h"
#include "session/run_names.h"

namespace lockstep {

namespace {

/// The section as it is written.
struct Section {
  SweepOptions options;
  Node keys, list, halving;
  std::optional<std::int64_t> trials;
};
using Options = SweepOptions;

std::uint64_t seed_of(const Params& section, const ParamSpec& option) {
  return static_cast<std::uint64_t>(section.integer(option.name));
}
std::string metric_of(const Params& section, const ParamSpec& option) {
  return std::string(without_split(section.string(option.name)));
}
Direction mode_of(const Params& section, const ParamSpec& option) {
  return section.has(option.name) ? direction_from(section.string(option.name)) : Direction::none;
}
std::int64_t points_of(const Params& range, const ParamSpec& option) {
  return range.optional_integer(option.name).value_or(0);
}

// None of it changes what a run computes.
constexpr ParamSpec kTable[] = {
    option<&Section::options, &Options::method>(
        "method", "grid", one_of("grid|random|sobol|list"),
        "Which trials there are. grid: all combinations of the values of keys. random, sobol: points in the "
        "space of keys. list: those of list.",
        Change::free),
    option<&Section::keys>(
        "keys", "null", in_words("map or null"),
        "The keys that differ between trials, as --set names them, each with a list of values or a range: "
        "{optimizer.learning_rate: {min: 0.0001, max: 0.1, scale: log}}.",
        Change::free),
    option<&Section::list>("list", "null", in_words("list or null"),
                           "list: a map {KEY: VALUE} for each trial.", Change::free),
    option<&Section::trials>("trials", "null", between(1, 100000).or_null(),
                             "random, sobol: the number of trials.", Change::free),
    option_as<seed_of, &Section::options, &Options::seed>(
        ParamType::integer, "seed", "0", between(0, 9223372036854775807),
        "random, sobol: another seed gives other trials.", Change::free),
    option_as<metric_of, &Section::options, &Options::metric>(
        ParamType::string, "metric", "loss", {},
        "What trials are compared by: loss, accuracy, or a metric of eval.metrics.", Change::free),
    option_as<mode_of, &Section::options, &Options::mode>(
        ParamType::string, "mode", "null", one_of("min|max").or_null(),
        "Whether a smaller (min) or a larger (max) value is better. null: as the metric says, min for losses "
        "and errors, max for accuracies.",
        Change::free),
    option<&Section::halving>("halving", "null", in_words("map or null"),
                              "Successive halving: trials stop in rungs, and only the best of a rung go on. "
                              "null: all trials train to the end.",
                              Change::free),
    option<&Section::options, &Options::groups>(
        "groups", "null", between(1, 65536).or_null(),
        "So many trials train at once, each on a part of the ranks; --groups of the command line comes "
        "first. null: as many as there are ranks.",
        Change::free),
};

constexpr ParamSpec kRange[] = {
    option<&SweepKey::min>("min", kRequired, between(-1e30, 1e30), "The smallest value.", Change::free),
    option<&SweepKey::max>("max", kRequired, between(-1e30, 1e30), "The largest value.", Change::free),
    option_as<is_second_choice, &SweepKey::is_log>(
        ParamType::string, "scale", "linear", one_of("linear|log"),
        "linear: values are spread evenly. log: their logarithms are.", Change::free),
    option_as<is_second_choice, &SweepKey::is_whole>(ParamType::string, "type", "real",
                                                     one_of("real|integer"), "integer: whole numbers only.",
                                                     Change::free),
    option_as<points_of, &SweepKey::points>(ParamType::integer, "points", "null",
                                            between(2, 100000).or_null(),
                                            "grid: the number of values, with min and max.", Change::free),
};

constexpr ParamSpec kHalving[] = {
    option<&Options::first>(
        "first", kRequired, between(1, 1e12, "steps or epochs"),
        "Where the first rung ends: a number of steps if train.steps is given, else of epochs. Each further "
        "rung ends factor times as late, the last one where the training ends.",
        Change::free),
    option<&Options::factor>("factor", "3", between(2, 1000),
                             "One in so many trials of a rung goes on to the next.", Change::free),
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
  key = range.as<SweepKey>();
  key.key = name;
  if (!(key.min < key.max))
    throw range.error(option_name<&SweepKey::max>(range), "is not above min", "Give a larger max.");
  if (key.is_log && !(key.min > 0))
    throw range.error(option_name<&SweepKey::min>(range), "has no logarithm",
                      "Give a min above 0, or scale: linear.");
  if (key.is_whole && (key.min != std::floor(key.min) || key.max != std::floor(key.max)))
    throw range.error(option_name<&SweepKey::is_whole>(range), "min and max of whole numbers are not whole",
                      "Give whole numbers.");
  if (is_grid && key.points == 0)
    throw range.error(option_name<&SweepKey::points>(range),
                      "a grid needs to know how many values of a range it takes",
                      "Give points, or a list of values.");
  if (!is_grid && key.points != 0)
    throw range.error(option_name<&SweepKey::points>(range), "belongs to a grid",
                      "Leave it out, or give method: grid.");
  return key;
}

void read_keys(const Params& section, const Node& keys, SweepOptions& options) {
  const std::string_view option = option_name<&Section::keys>(section);
  if (keys.kind != Node::Kind::map || keys.entries.empty())
    throw section.error(option, "names no keys", "Write keys: {optimizer.learning_rate: [0.01, 0.001]}.");
  double combinations = 1;
  for (const auto& [name, value] : keys.entries) {
    options.keys.push_back(key_of(name, value, options.method == SweepOptions::Method::grid));
    const SweepKey& key = options.keys.back();
    combinations *= static_cast<double>(key.values.empty() ? key.points : std::ssize(key.values));
  }
  if (options.method == SweepOptions::Method::grid && combinations > kMostGridTrials)
    throw section.error(option, fmt::format("the grid has {:.6g} trials", combinations),
                        fmt::format("Give at most {}, or method: random.", kMostGridTrials));
  if (options.method == SweepOptions::Method::sobol && options.keys.size() > kMostSobolKeys)
    throw section.error(option, fmt::format("sobol has at most {} keys", kMostSobolKeys),
                        "Give method: random.");
}

void read_list(const Params& section, const Node& list, SweepOptions& options) {
  if (list.kind != Node::Kind::list || list.items.empty())
    throw section.error(option_name<&Section::list>(section), "has no trials",
                        "Write list: [{optimizer.learning_rate: 0.01}].");
  for (const Node& item : list.items) {
    if (item.kind != Node::Kind::map)
      throw Error(ErrorKind::config, "section sweep, list: a trial is no map", item.where,
                  "Write {KEY: VALUE}.");
    std::vector<KeySetting>& settings = options.list.emplace_back();
    for (const auto& [key, value] : item.entries) settings.push_back({key, value_text(value)});
  }
}

/// For an option that is written.
void refuse(const Params& section, std::string_view option, SweepOptions::Method method) {
  throw section.error(option, fmt::format("has no effect with method {}", name_of(method)),
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
  const auto written = section.as<Section>();
  SweepOptions options = written.options;
  const std::string_view trials = option_name<&Section::trials>(section),
                         seed = option_name<&Section::options, &Options::seed>(section);
  if (options.method == list) {
    if (!is_null(written.keys)) refuse(section, option_name<&Section::keys>(section), options.method);
    read_list(section, written.list, options);
  } else {
    if (!is_null(written.list)) refuse(section, option_name<&Section::list>(section), options.method);
    read_keys(section, written.keys, options);
  }
  if (options.method == random || options.method == sobol) {
    if (!written.trials)
      throw section.error(trials,
                          fmt::format("method {} needs the number of trials", name_of(options.method)),
                          "Write trials: 20.");
    options.trials = *written.trials;
  } else {
    if (written.trials) refuse(section, trials, options.method);
    if (section.given(seed)) refuse(section, seed, options.method);
  }
  if (!is_null(written.halving)) {
    const auto halving = Params(written.halving, kHalving, "section sweep, halving").as<SweepOptions>();
    options.first = halving.first;
    options.factor = halving.factor;
  }
  return options;
}

}  // namespace lockstep
