// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/evaluation_settings.h"

#include <fmt/format.h>

#include <string>

#include "run/sections/config_values.h"

namespace lockstep {

namespace {

bool is_at(std::string_view path, std::string_view place) {
  return path == place || (path.starts_with(place) && path[place.size()] == '.');
}

/// Metrics that have no name of their own are called by their kind and a number.
bool defines(std::string_view path, std::string_view metric) {
  if (metric == "loss" || metric.starts_with("loss/"))
    return is_at(path, "model.loss") || is_at(path, "model.heads");
  const std::string place = fmt::format("eval.metrics.{}", metric);
  return is_at(path, place) || is_at(path, place + "1");
}

}  // namespace

StateSettings evaluation_settings(const Node& root, const std::string& base_directory,
                                  std::string_view metric) {
  StateSettings settings;
  for (const ConfigValue& value : config_values(root, base_directory))
    if (value.path == "eval.averages" ||
        (value.change == Change::result && (defines(value.path, metric) || is_at(value.path, "data.eval"))))
      settings.emplace_back(value.path, value.value);
  return settings;
}

}  // namespace lockstep
