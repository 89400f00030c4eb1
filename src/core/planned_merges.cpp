// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/planned_merges.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/error.h"

namespace lockstep {

int PlannedMerges::add_input(std::int64_t place) {
  LOCKSTEP_DCHECK(tables_.data() == nullptr && place >= 0);
  places_.push_back(place);
  levels_.push_back(0);
  return static_cast<int>(places_.size()) - 1;
}

void PlannedMerges::add_step(int into, int from) {
  LOCKSTEP_DCHECK(tables_.data() == nullptr && into != from);
  int &left = levels_.at(static_cast<std::size_t>(into)), &right = levels_.at(static_cast<std::size_t>(from));
  const int level = std::max(left, right);
  steps_.push_back({{into, from}, level});
  left = right = level + 1;
}

void PlannedMerges::add_output(int input, std::int64_t place) {
  LOCKSTEP_DCHECK(tables_.data() == nullptr && place >= 0 && input < std::ssize(places_));
  outputs_.push_back({place, input});
}

void PlannedMerges::load(Device& device) {
  std::ranges::stable_sort(steps_, {}, &LeveledStep::level);
  std::vector<TreeMerges::Step> steps;
  std::vector<std::int32_t> ends;
  for (const auto& [step, level] : steps_) {
    ends.resize(static_cast<std::size_t>(level) + 1);
    steps.push_back(step);
    ends.back() = static_cast<std::int32_t>(steps.size());
  }

  std::vector<std::byte> bytes;
  const auto add = [&](const auto& table) {
    const auto more = std::as_bytes(std::span(table));
    const std::size_t begin = bytes.size();
    bytes.insert(bytes.end(), more.begin(), more.end());
    return begin;
  };
  const std::size_t places = add(places_), results = add(outputs_), step_table = add(steps),
                    end_table = add(ends);
  tables_ = Buffer(device, std::max<std::size_t>(bytes.size(), 1));
  if (!bytes.empty()) device.copy_from_host(tables_.data(), bytes.data(), bytes.size());

  const auto* at = static_cast<const std::byte*>(tables_.data());
  tree_ = {.inputs = static_cast<std::int32_t>(places_.size()),
           .levels = static_cast<std::int32_t>(ends.size()),
           .outputs = static_cast<std::int32_t>(outputs_.size()),
           .places = reinterpret_cast<const std::int64_t*>(at + places),
           .steps = reinterpret_cast<const TreeMerges::Step*>(at + step_table),
           .level_ends = reinterpret_cast<const std::int32_t*>(at + end_table),
           .results = reinterpret_cast<const TreeMerges::Output*>(at + results)};
}

PlannedMerges merges_in_order(Device& device, int count, std::int64_t stride) {
  PlannedMerges plan;
  plan.add_input(count * stride);
  for (int i = 1; i < count; ++i) plan.add_step(0, plan.add_input(i * stride));
  plan.add_output(0, (count + 1) * stride);
  plan.load(device);
  return plan;
}

}  // namespace lockstep
