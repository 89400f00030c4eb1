// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/sweep_plan.h"

#include <algorithm>
#include <optional>

#include "config/yaml_node.h"
#include "run/sections/overrides.h"

namespace lockstep {

namespace {

void erase(Node& map, std::string_view key) {
  for (std::size_t i = 0; i < map.entries.size(); ++i)
    if (map.entries[i].first == key) {
      map.entries.erase(map.entries.begin() + static_cast<std::ptrdiff_t>(i));
      if (i < map.entry_where.size())
        map.entry_where.erase(map.entry_where.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
}

/// As written, with what a file in another folder needs.
Node root_of(const SweepPlan& plan, std::int64_t shards) {
  Node root = plan.base.root;
  Node base = Node::scalar(plan.base.base_directory);
  base.quoted = true;
  set_value(root, "base_directory", std::move(base));
  if (!plan.base.general.shards) set_value(root, "shards", Node::scalar(std::to_string(shards)));
  return root;
}

void check_rungs(const SweepPlan& plan) {
  if (!plan.options.first) return;
  for (const std::string& key : keys_of(plan.trials))
    if (key == "train" || key == "train.steps" || key == "train.epochs")
      throw plan.base.error("sweep", "halving",
                            fmt::format("trials differ in {}, so rungs have no common end", key),
                            "Leave the key out, or halving.");
}

/// A sweep of which no trial can begin is a mistake of the whole.
void check_trials(const SweepPlan& plan) {
  std::optional<Error> first;
  for (std::size_t trial = 0; trial < plan.trials.size(); ++trial) try {
      trial_config(plan, trial, 1);
      return;
    } catch (const Error& error) {
      if (!first) first = error;
    }
  throw Error(first->kind(), fmt::format("no trial of the sweep can begin. {}", first->what_happened()),
              first->where(), first->advice());
}

}  // namespace

std::string SweepPlan::end_text(const Rung& rung) const {
  return fmt::format("{} {}{}", *rung.end, in_epochs ? "epoch" : "step", *rung.end == 1 ? "" : "s");
}

SweepPlan sweep_plan(Config base) {
  if (is_null(base.section("").node("sweep")))
    throw base.error("", "sweep", "the configuration has no section sweep, so there is nothing to try",
                     "Add sweep: {keys: {optimizer.learning_rate: [0.01, 0.001]}}.");
  if (base.cluster.used())
    throw base.error("cluster", "ps", "trials of a sweep train without parameter servers",
                     "Leave section cluster out.");
  if (!base.data.eval)
    throw base.error("sweep", "metric",
                     "trials are compared by an evaluation, and there is no evaluation set",
                     "Add eval: to section data.");
  SweepPlan plan{.base = std::move(base)};
  plan.options = sweep_options(plan.base.section("sweep"));
  plan.options.larger_is_better =
      plan.options.mode == Direction::max ||
      (plan.options.mode == Direction::none &&
       direction_of(plan.options.metric, plan.base.eval.metrics) == Direction::max);
  plan.trials = trials_of(plan.options);
  plan.in_epochs = !plan.base.train.steps;
  plan.rungs = rungs_of(plan.options, std::ssize(plan.trials),
                        plan.in_epochs ? *plan.base.train.epochs : *plan.base.train.steps);
  check_rungs(plan);
  check_trials(plan);
  return plan;
}

Config trial_config(const SweepPlan& plan, std::size_t trial, std::int64_t shards) {
  Node root = root_of(plan, shards);
  erase(root, "sweep");
  std::vector<std::string> overrides;
  for (const KeySetting& setting : plan.trials[trial])
    overrides.push_back(fmt::format("{}={}", setting.key, setting.value));
  return config_from_text(to_yaml(root), fmt::format("trial {}", trial), overrides);
}

std::string sweep_text(const SweepPlan& plan, std::int64_t shards) { return to_yaml(root_of(plan, shards)); }

}  // namespace lockstep
