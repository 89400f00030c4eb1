// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/step_metrics.h"

#include <algorithm>

#include "core/error.h"
#include "core/plain_nan.h"

namespace lockstep {

StepMetrics::Id StepMetrics::add(Metric metric) {
  LOCKSTEP_CHECK(find(metric.name) == kNone, "two metrics are called {}", metric.name);
  metrics_.push_back(std::move(metric));
  values_.emplace_back();
  return size() - 1;
}

StepMetrics::Id StepMetrics::add(std::span<const std::string> names) {
  const Id first = size();
  for (const std::string& name : names) add(name);
  return first;
}

void StepMetrics::clear() { std::ranges::fill(values_, std::nullopt); }

StepMetrics::Id StepMetrics::find(std::string_view name) const {
  const auto found = std::ranges::find(metrics_, name, &Metric::name);
  return found == metrics_.end() ? kNone : static_cast<Id>(found - metrics_.begin());
}

std::optional<double> StepMetrics::value(Id id) const {
  const Metric& metric = metrics_[static_cast<std::size_t>(id)];
  const std::optional<double> value = metric.read ? metric.read() : values_[static_cast<std::size_t>(id)];
  return value ? std::optional(plain_nan(*value)) : value;
}

std::optional<double> StepMetrics::value(std::string_view name) const {
  const Id id = find(name);
  return id == kNone ? std::nullopt : value(id);
}

}  // namespace lockstep
