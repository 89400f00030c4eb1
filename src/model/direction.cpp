// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/direction.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/metric.h"

namespace lockstep {

namespace {

/// The parts of a name: HEAD/METRIC ("digit/f1") and METRIC/COLUMN ("r2/price") have the direction of METRIC.
std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/')) {
    parts.push_back(name.substr(0, slash));
    name.remove_prefix(slash + 1);
  }
  parts.push_back(name);
  return parts;
}

}  // namespace

Direction direction_of(std::string_view name, std::span<const MetricSpec> metrics) {
  constexpr std::string_view kSplit = "eval/";
  if (name.starts_with(kSplit)) name.remove_prefix(kSplit.size());
  const auto named = std::ranges::find(metrics, name, &MetricSpec::name);
  if (named != metrics.end()) return named->entry->direction;
  if (name == "loss" || name.starts_with("loss/")) return Direction::min;
  if (name == "accuracy" || name.ends_with("/accuracy")) return Direction::max;
  for (const MetricSpec& metric : metrics) {
    const std::string path = fmt::format("/{}/", metric.name);
    if (fmt::format("/{}/", name).find(path) != std::string::npos) return metric.entry->direction;
  }
  for (const std::string_view part : parts_of(name))
    if (const MetricEntry* const entry = metric_table().find(part)) return entry->direction;
  return Direction::none;
}

std::string_view name_of(Direction direction) {
  return direction == Direction::min ? "min" : direction == Direction::max ? "max" : "null";
}

std::string_view better_text(Direction direction) {
  return direction == Direction::max ? "a larger" : "a smaller";
}

Direction direction_from(std::string_view text) {
  return text == "min" ? Direction::min : text == "max" ? Direction::max : Direction::none;
}

Direction resolve(const DirectionOption& option, Direction of_metric) {
  if (option.given == Direction::none && of_metric == Direction::none)
    throw Error(ErrorKind::config,
                fmt::format("the metric '{}' does not say whether a smaller or a larger value is better",
                            option.metric),
                option.where, fmt::format("Give {}: min or max.", option.option));
  if (option.given == Direction::none) return of_metric;
  if (of_metric == Direction::none || of_metric == option.given) return option.given;
  throw Error(ErrorKind::config,
              fmt::format("{} is {}, and {} '{}' is better", option.option, name_of(option.given),
                          better_text(of_metric), option.metric),
              option.where,
              fmt::format("Leave {} out, or set it to null: the metric says what is better.", option.option));
}

}  // namespace lockstep
