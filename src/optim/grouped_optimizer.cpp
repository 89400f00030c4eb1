// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/grouped_optimizer.h"

#include <algorithm>

#include "core/range.h"

namespace lockstep {

namespace {

std::unique_ptr<Optimizer> rule_of_group(const VariableGroup& group, int number, const Optimizer& first) {
  if (group.frozen) return nullptr;
  std::unique_ptr<Optimizer> rule = group.entry.make(group.options);
  if (!group.own_rule) rule->follow(first, group.learning_rate_factor, group.own_decay ? "weight_decay" : "");
  for (ScheduledNumber& scheduled : rule->numbers())
    scheduled.set_option(fmt::format("group{}/{}", number, scheduled.option()));
  return rule;
}

std::vector<std::unique_ptr<Optimizer>> rules_of(std::unique_ptr<Optimizer> first,
                                                 std::span<const VariableGroup> groups) {
  std::vector<std::unique_ptr<Optimizer>> rules;
  rules.push_back(std::move(first));
  for (std::size_t i = 0; i < groups.size(); ++i)
    rules.push_back(rule_of_group(groups[i], static_cast<int>(i) + 1, *rules.front()));
  return rules;
}

bool any_lazy(std::span<const std::unique_ptr<Optimizer>> rules) {
  return std::ranges::any_of(rules, [](const auto& rule) { return rule != nullptr && rule->lazy(); });
}

}  // namespace

GroupedOptimizer::GroupedOptimizer(std::vector<std::unique_ptr<Optimizer>> rules,
                                   std::vector<VariableGroup> groups)
    : Optimizer(*rules.front(), any_lazy(rules)), groups_(std::move(groups)), rules_(std::move(rules)) {}

std::unique_ptr<Optimizer> GroupedOptimizer::make(std::unique_ptr<Optimizer> first,
                                                  std::span<const VariableGroup> groups) {
  return std::unique_ptr<Optimizer>(
      new GroupedOptimizer(rules_of(std::move(first), groups), {groups.begin(), groups.end()}));
}

std::vector<Optimizer::Described> GroupedOptimizer::describe_all(const VariableStore& variables) const {
  std::vector<Described> all;
  for (const auto& rule : rules_)
    all.push_back({rule != nullptr ? rule->describe() : "none: the variables keep their values", {}});
  for (const Variable& variable : variables.variables()) {
    if (!variable.parameter) continue;
    const int group = group_of(groups_, variable.name);
    if (variable.trainable || (group >= 0 && groups_[static_cast<std::size_t>(group)].frozen))
      all[static_cast<std::size_t>(group + 1)].variables.push_back(variable.name);
  }
  std::erase_if(all, [](const Described& described) { return described.variables.empty(); });
  return all;
}

std::span<const std::string_view> GroupedOptimizer::slot_names() const {
  std::span<const std::string_view> most;
  for (const auto& rule : rules_)
    if (rule != nullptr && rule->slot_names().size() > most.size()) most = rule->slot_names();
  return most;
}

std::string_view GroupedOptimizer::slot_name(std::size_t slot, const Variable& variable) const {
  const std::span<const std::string_view> names = rule_named(variable.name).slot_names();
  return slot < names.size() ? names[slot] : std::string_view();
}

float GroupedOptimizer::initial_value(std::size_t slot) const {
  for (const auto& rule : rules_)
    if (rule != nullptr && slot < rule->slot_names().size() && rule->initial_value(slot) != 0)
      return rule->initial_value(slot);
  return 0;
}

void GroupedOptimizer::fill_with_initial(std::size_t slot, std::span<float> values) const {
  const Range all{0, static_cast<std::int64_t>(values.size())};
  for (const Range& part : held().empty() ? std::span(&all, 1) : held()) {
    const Segment* segment = segments_.data();
    for (std::int64_t first = part.first; first < part.last;) {
      while (segment->last <= first) ++segment;
      const std::int64_t last = std::min(segment->last, part.last);
      const bool has_it = slot < segment->rule->slot_names().size();
      std::fill_n(values.begin() + place_in_slot(first), last - first,
                  has_it ? segment->rule->initial_value(slot) : 0.0F);
      first = last;
    }
  }
}

bool GroupedOptimizer::updates_parts() const {
  return std::ranges::all_of(rules_,
                             [](const auto& rule) { return rule == nullptr || rule->updates_parts(); });
}

std::vector<ScheduledNumber*> GroupedOptimizer::all_numbers() {
  std::vector<ScheduledNumber*> all;
  for (const auto& rule : rules_)
    if (rule != nullptr) {
      const std::vector<ScheduledNumber*> some = rule->all_numbers();
      all.insert(all.end(), some.begin(), some.end());
    }
  return all;
}

std::vector<GroupedOptimizer::GroupRate> GroupedOptimizer::group_rates() const {
  std::vector<GroupRate> rates;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Optimizer* const rule = rules_[i + 1].get();
    if (rule == nullptr || (groups_[i].learning_rate_factor == 1 && !groups_[i].own_rule)) continue;
    const ScheduledNumber& rate = rule->numbers().front();
    if (rate.follows() || rate.schedule().empty())
      rates.push_back({fmt::format("group{}/learning_rate", i + 1), rule});
  }
  return rates;
}

void GroupedOptimizer::prepare(std::int64_t step) {
  for (const auto& rule : rules_)
    if (rule != nullptr) rule->begin_step(step);
}

void GroupedOptimizer::reset_updates() {
  Optimizer::reset_updates();
  for (const auto& rule : rules_)
    if (rule != nullptr) rule->reset_updates();
}

Optimizer& GroupedOptimizer::rule_named(std::string_view variable) const {
  Optimizer* const rule = rules_[static_cast<std::size_t>(group_of(groups_, variable) + 1)].get();
  LOCKSTEP_CHECK(rule != nullptr, "{} is frozen", variable);
  return *rule;
}

void GroupedOptimizer::set_variables(Device& device, const VariableStore& variables,
                                     std::span<const VariableId> own) {
  std::vector<std::vector<VariableId>> of_rules(rules_.size());
  for (const VariableId id : own) {
    const Variable& variable = variables[id];
    of_rules[static_cast<std::size_t>(group_of(groups_, variable.name) + 1)].push_back(id);
    const Optimizer* const rule = &rule_named(variable.name);
    if (!segments_.empty() && segments_.back().rule == rule) continue;
    if (!segments_.empty()) segments_.back().last = variable.offset;
    segments_.push_back({0, rule});
  }
  if (!segments_.empty()) segments_.back().last = variables.trainable_elements();
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (rules_[i] != nullptr) rules_[i]->join(*this, device, variables, of_rules[i]);
}

bool GroupedOptimizer::measures() const {
  return std::ranges::any_of(rules_, [](const auto& rule) { return rule != nullptr && rule->measures(); });
}

void GroupedOptimizer::measure(const UpdateContext& context, const float* gradients) {
  for (const auto& rule : rules_)
    if (rule != nullptr && rule->measures()) rule->measure(context, gradients);
}

void GroupedOptimizer::share_measures(const GradientParts& parts) {
  for (const auto& rule : rules_)
    if (rule != nullptr) rule->share_measures(parts);
}

std::vector<MatrixWork*> GroupedOptimizer::all_matrix_work(const UpdateContext& context) {
  std::vector<MatrixWork*> all;
  for (const auto& rule : rules_)
    if (MatrixWork* const work = rule != nullptr ? rule->matrix_work(context) : nullptr; work != nullptr)
      if (!work->matrices().empty()) all.push_back(work);
  return all;
}

bool GroupedOptimizer::takes_rows(std::string_view variable) const {
  const auto& rule = rules_[static_cast<std::size_t>(group_of(groups_, variable) + 1)];
  return rule == nullptr || rule->takes_rows(variable);
}

const GroupedOptimizer::Segment& GroupedOptimizer::segment_at(std::int64_t element) const {
  return *std::ranges::upper_bound(segments_, element, {}, &Segment::last);
}

void GroupedOptimizer::update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                              const float* gradients, Range range) const {
  if (range.size() <= 0) return;
  const Segment* segment = &segment_at(range.first);
  for (std::int64_t first = range.first; first < range.last; ++segment) {
    const std::int64_t last = std::min(segment->last, range.last);
    segment->rule->update(kernels, lane, variables, gradients + (first - range.first), {first, last});
    first = last;
  }
}

void GroupedOptimizer::update_rows(const KernelTable& kernels, const Lane& lane,
                                   const VariableStore& variables, const Variable& table,
                                   const SparseRows& gradient, Range rows) const {
  segment_at(table.offset).rule->update_rows(kernels, lane, variables, table, gradient, rows);
}

}  // namespace lockstep
