// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/update_rule.h"

#include <algorithm>

#include "core/sparse_rows.h"

namespace lockstep {

UpdateRule::UpdateRule(ScheduledNumber&& learning_rate, bool lazy)
    : learning_rate_(scheduled(std::move(learning_rate))),
      rate_text_(learning_rate_.written()),
      lazy_(lazy) {}

std::string UpdateRule::describe() const {
  const std::string rule = formula();
  return fmt::format("{}: {}{}lr = {}{}", kind(), rule, rule.empty() ? "" : "; ", rate_text_,
                     lazy_ ? "; lazy: rows that a step does not touch stay as they are" : "");
}

void UpdateRule::follow(const UpdateRule& other, double factor, std::string_view but) {
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const bool is_rate = numbers_[i].option() == "learning_rate";
    if (numbers_[i].option() != but) numbers_[i].follow(other.numbers_[i], is_rate ? factor : 1);
  }
  if (factor != 1) rate_text_ = fmt::format("{} * {}", factor, rate_text_);
}

bool UpdateRule::depends_on_steps() const { return std::ranges::any_of(corrected_, &MeanDecay::has_numbers); }

void UpdateRule::count_update(std::int64_t step, UpdateClass& of) const {
  ++of.updates;
  for (const MeanDecay& decay : corrected_) decay.count(step, of);
  count(step, of);
}

UpdateClass UpdateRule::updates_of_last(std::int64_t count, std::int64_t step) const {
  if (initial_numbers_.empty()) return {.updates = count};
  UpdateClass updates{.updates = 0, .numbers = initial_numbers_};
  for (std::int64_t i = step - count; i < step; ++i) count_update(std::max(i, std::int64_t{0}), updates);
  return updates;
}

void UpdateRule::bind(const OptimizerSlots& slots, const UpdateCounts& counts, Device& device,
                      const VariableStore& variables, std::span<const VariableId> own) {
  slots_ = &slots;
  counts_ = &counts;
  set_variables(device, variables, own);
}

void UpdateRule::update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                             const Variable& table, const SparseRows& gradient, Range rows) const {
  static constexpr std::int64_t kZeros = 1024;
  static constexpr float zeros[kZeros] = {};
  const std::int64_t width = table.shape.num_elements() / table.shape[0];
  const auto others = [&](std::int64_t first, std::int64_t last) {
    if (lazy()) return;
    const std::int64_t end = table.offset + last * width;
    for (std::int64_t at = table.offset + first * width; at < end; at += kZeros)
      update(kernels, lane, variables, zeros, {at, std::min(at + kZeros, end)});
  };
  std::int64_t next = rows.first;
  const std::int32_t *const begin = gradient.rows, *const given = begin + *gradient.count;
  for (const std::int32_t* row = std::lower_bound(begin, given, rows.first); row != given && *row < rows.last;
       ++row) {
    others(next, *row);
    const std::int64_t at = table.offset + *row * width;
    update(kernels, lane, variables, gradient.values + (row - begin) * width, {at, at + width});
    next = *row + 1;
  }
  others(next, rows.last);
}

}  // namespace lockstep
