// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/update_counts.h"

#include <limits>
#include <utility>

#include "core/error.h"

namespace lockstep {

void UpdateCounts::set_variables(const VariableStore& variables, std::span<const VariableId> own,
                                 std::vector<double> initial) {
  initial_ = {.updates = 0, .numbers = std::move(initial)};
  own_.clear();
  for (const VariableId id : own) own_.push_back({variables[id].offset, 0});
  reset();
}

void UpdateCounts::reset() {
  classes_.assign(1, initial_);
  for (Own& variable : own_) variable.number = 0;
  divide();
}

std::size_t UpdateCounts::place_of(const Variable& variable) const {
  const auto found = std::ranges::lower_bound(own_, variable.offset, {}, &Own::offset);
  LOCKSTEP_CHECK(found != own_.end() && found->offset == variable.offset, "{} has another rule",
                 variable.name);
  return static_cast<std::size_t>(found - own_.begin());
}

void UpdateCounts::set(const Variable& variable, const UpdateClass& updates) {
  const auto known = std::ranges::find(classes_, updates);
  own_[place_of(variable)].number = static_cast<std::size_t>(known - classes_.begin());
  if (known == classes_.end()) classes_.push_back(updates);
  divide();
}

/// Removes classes without variables, and finds the segments.
void UpdateCounts::divide() {
  std::vector<UpdateClass> used;
  std::vector<std::size_t> number_of(classes_.size(), classes_.size());
  for (Own& variable : own_) {
    std::size_t& number = number_of[variable.number];
    if (number == classes_.size()) {
      number = used.size();
      used.push_back(classes_[variable.number]);
    }
    variable.number = number;
  }
  if (used.empty()) used.push_back(initial_);
  classes_ = std::move(used);
  segments_.clear();
  for (const Own& variable : own_) {
    if (!segments_.empty() && segments_.back().number == variable.number) continue;
    if (!segments_.empty()) segments_.back().last = variable.offset;
    segments_.push_back({std::numeric_limits<std::int64_t>::max(), variable.number});
  }
}

Tensor UpdateCounts::tensor(const Variable& variable) const {
  const Own& own = own_[place_of(variable)];
  const UpdateClass& updates = classes_[own.number];
  own.copied.assign(1, static_cast<double>(updates.updates));
  own.copied.insert(own.copied.end(), updates.numbers.begin(), updates.numbers.end());
  return {own.copied.data(), DType::f64, Shape{static_cast<std::int64_t>(own.copied.size())}};
}

}  // namespace lockstep
