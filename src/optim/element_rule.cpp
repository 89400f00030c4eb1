// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/element_rule.h"

#include "core/range.h"
#include "core/sparse_rows.h"
#include "kernels/kernel_table.h"

namespace lockstep {

ElementRule::ElementRule(RuleOptions&& options, std::initializer_list<Slot> slots, WeightDecay decay)
    : UpdateRule(std::move(options.learning_rate), options.lazy), decay_(decay) {
  if (decay_ != WeightDecay::none) factor_ = &scheduled(std::move(options.weight_decay));
  for (const Slot& slot : slots) {
    if (slot.name.empty()) continue;
    names_.push_back(slot.name);
    initial_.push_back(slot.initial);
  }
  LOCKSTEP_CHECK(names_.size() <= kMostSlots, "{} slots", names_.size());
}

std::string ElementRule::formula() const {
  if (factor_ == nullptr || factor_->is_zero()) return rule_text();
  return fmt::format("{}; {}",
                     fmt::format(decay_ == WeightDecay::decoupled ? fmt::runtime("w *= 1 - lr {}")
                                                                  : fmt::runtime("g += {} w"),
                                 factor_->text()),
                     rule_text());
}

void ElementRule::prepare(std::int64_t step) {
  const double rate = learning_rate(step);
  now_.resize(counts().classes().size());
  for (std::size_t i = 0; i < now_.size(); ++i) {
    now_[i] = at(step, rate, counts().classes()[i]);
    if (factor_ == nullptr) continue;
    if (decay_ == WeightDecay::decoupled)
      now_[i].kept = static_cast<float>(1 - rate * factor_->at(step));
    else
      now_[i].coupled = static_cast<float>(factor_->at(step));
  }
}

RuleSlots ElementRule::slots_from(std::int64_t first) const {
  RuleSlots slots;
  if (names_.empty()) return slots;
  const std::int64_t place = place_in_slot(first);
  for (std::size_t i = 0; i < names_.size(); ++i) slots.at[i] = slot(i) + place;
  return slots;
}

void ElementRule::update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                         const float* gradients, Range range) const {
  counts().for_each_part(range, [&](Range part, std::size_t number) {
    kernels.update.apply(lane, now_[number], part.size(), variables.trainable_address() + part.first,
                         gradients + (part.first - range.first), slots_from(part.first));
  });
}

void ElementRule::update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                              const Variable& table, const SparseRows& gradient, Range rows) const {
  const RuleStep& now = now_[counts().class_at(table.offset)];
  const bool others = !lazy() && (zero_gradient_moves() || now.decays());
  kernels.update.apply_rows(lane, now,
                            {rows.first, rows.last, table.shape.num_elements() / table.shape[0],
                             gradient.count, gradient.most, gradient.rows, gradient.values, others},
                            variables.trainable_address() + table.offset, slots_from(table.offset));
}

float share_below_one(const Params& options, const ParamSpec& option) {
  const auto share = static_cast<float>(options.real(option.name));
  if (!(share < 1.0F))
    throw options.error(option.name, fmt::format("'{}' is 1 when rounded to float32", option.name));
  return share;
}

}  // namespace lockstep
