// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/device.h"
#include "core/error.h"
#include "optim/matrix_work.h"
#include "optim/update_rule.h"
#include "optim/variable_groups.h"

namespace lockstep {

namespace {

/// By offset.
std::vector<VariableId> trainable_in_order(const VariableStore& variables) {
  std::vector<VariableId> ids;
  for (std::size_t i = 0; i < variables.variables().size(); ++i)
    if (variables.variables()[i].trainable) ids.push_back(static_cast<VariableId>(i));
  std::ranges::sort(ids, {}, [&](VariableId id) { return variables[id].offset; });
  return ids;
}

float initial_value(const UpdateRule& rule, std::size_t slot) {
  return slot < rule.slot_names().size() ? rule.initial_value(slot) : 0;
}

void require_device(const UpdateRule& rule, const Device& device) {
  if (!device.is_host() && !rule.updates_on_devices())
    throw Error(ErrorKind::config,
                fmt::format("the optimizer {} updates variables in host memory only", rule.kind()), {},
                "Train on the CPU (device: cpu). A rule that also works on a GPU is a derived class of "
                "ElementRule (docs/adding_an_optimizer.md).");
}

}  // namespace

Optimizer::Optimizer(std::unique_ptr<UpdateRule> rule,
                     std::shared_ptr<const std::vector<VariableGroup>> groups)
    : groups_(std::move(groups)) {
  const auto add = [&](std::unique_ptr<UpdateRule> one) {
    of_group_.push_back(one == nullptr ? nullptr : &members_.emplace_back(Member{std::move(one), {}}));
  };
  add(std::move(rule));
  for (std::size_t i = 0; groups_ != nullptr && i < groups_->size(); ++i)
    add(rule_of_group((*groups_)[i], static_cast<int>(i) + 1, first()));
}

Optimizer::~Optimizer() = default;

Optimizer::Member* Optimizer::member_named(std::string_view variable) const {
  return of_group_[groups_ == nullptr ? 0 : static_cast<std::size_t>(group_of(*groups_, variable) + 1)];
}

Optimizer::Member& Optimizer::member_of(const Variable& variable) const {
  Member* const member = member_named(variable.name);
  LOCKSTEP_CHECK(member != nullptr, "{} is frozen", variable.name);
  return *member;
}

const char* Optimizer::kind() const { return first().kind(); }

double Optimizer::learning_rate(std::int64_t step) const { return first().learning_rate(step); }

std::string Optimizer::subject() const {
  return first().updates_parts() && !first().measures() ? "a group's rule"
                                                        : fmt::format("the optimizer {}", kind());
}

std::vector<Optimizer::Described> Optimizer::describe(const VariableStore& variables) const {
  if (groups_ == nullptr) return {{first().describe(), {}}};
  std::vector<Described> all;
  for (const Member* member : of_group_)
    all.push_back(
        {member != nullptr ? member->rule->describe() : "none: the variables keep their values", {}});
  for (const Variable& variable : variables.variables()) {
    if (!variable.parameter) continue;
    const auto place = static_cast<std::size_t>(group_of(*groups_, variable.name) + 1);
    if (variable.trainable || of_group_[place] == nullptr) all[place].variables.push_back(variable.name);
  }
  std::erase_if(all, [](const Described& described) { return described.variables.empty(); });
  return all;
}

std::vector<ScheduledNumber*> Optimizer::numbers() {
  std::vector<ScheduledNumber*> all;
  for (const Member& member : members_)
    for (ScheduledNumber& number : member.rule->numbers())
      if (!number.follows()) all.push_back(&number);
  return all;
}

std::vector<Optimizer::GroupRate> Optimizer::group_rates() const {
  std::vector<GroupRate> rates;
  for (std::size_t i = 1; i < of_group_.size(); ++i) {
    const VariableGroup& group = (*groups_)[i - 1];
    if (group.frozen || (group.learning_rate_factor == 1 && !group.own_rule)) continue;
    const UpdateRule* const rule = of_group_[i]->rule.get();
    const ScheduledNumber& rate = rule->numbers().front();
    if (rate.follows() || rate.schedule().empty())
      rates.push_back({fmt::format("group{}/learning_rate", i), rule});
  }
  return rates;
}

bool Optimizer::updates_parts() const {
  return std::ranges::all_of(members_, [](const Member& member) { return member.rule->updates_parts(); });
}

bool Optimizer::lazy() const {
  return std::ranges::any_of(members_, [](const Member& member) { return member.rule->lazy(); });
}

bool Optimizer::measures() const {
  return std::ranges::any_of(members_, [](const Member& member) { return member.rule->measures(); });
}

bool Optimizer::takes_rows(std::string_view variable) const {
  const Member* const member = member_named(variable);
  return member == nullptr || member->rule->takes_rows(variable);
}

void Optimizer::create_slots(Device& device, const VariableStore& variables, std::vector<Range> held) {
  for (const Member& member : members_) require_device(*member.rule, device);
  if (!held.empty() && !updates_parts())
    throw Error(ErrorKind::config,
                fmt::format("optimizer.shard: {} needs whole variables on each rank", subject()), {},
                "Remove shard, or use a rule that updates each element alone (docs/sharding.md).");
  slots_.create(device, variables.trainable_elements(), slot_names(), std::move(held));
  const std::vector<VariableId> all = trainable_in_order(variables);
  for (const VariableId id : all) {
    const UpdateRule* const rule = member_of(variables[id]).rule.get();
    if (!segments_.empty() && segments_.back().rule == rule) continue;
    if (!segments_.empty()) segments_.back().last = variables[id].offset;
    segments_.push_back({variables.trainable_elements(), rule});
  }
  for (Member& member : members_) {
    std::vector<VariableId> own;
    for (const VariableId id : all)
      if (&member_of(variables[id]) == &member) own.push_back(id);
    member.counts.set_variables(variables, own, member.rule->initial_numbers());
    member.rule->bind(slots_, member.counts, device, variables, own);
  }
  for (std::size_t slot = 0; slot < slots_.count(); ++slot)
    for (const Segment& segment : segments_)
      if (initial_value(*segment.rule, slot) != 0) return reset_slots();
}

std::span<const std::string_view> Optimizer::slot_names() const {
  std::span<const std::string_view> most;
  for (const Member& member : members_)
    if (member.rule->slot_names().size() > most.size()) most = member.rule->slot_names();
  return most;
}

std::string_view Optimizer::slot_name(std::size_t slot, const Variable& variable) const {
  const std::span<const std::string_view> names = member_of(variable).rule->slot_names();
  return slot < names.size() ? names[slot] : std::string_view();
}

std::string Optimizer::meaning_of_slots(const Variable& variable) const {
  return member_of(variable).rule->meaning_of_slots(variable);
}

void Optimizer::reset_slots() {
  slots_.clear();
  for (std::size_t slot = 0; slot < slots_.count(); ++slot) {
    std::int64_t first = 0;
    for (const Segment& segment : segments_) {
      if (const float value = initial_value(*segment.rule, slot); value != 0)
        slots_.fill(slot, {first, segment.last}, value);
      first = segment.last;
    }
  }
  slots_.to_device();
  reset_updates();
}

void Optimizer::begin_anew(const VariableStore& variables, std::span<const VariableId> ids) {
  slots_.to_host();
  for (const VariableId id : ids) {
    const Variable& variable = variables[id];
    if (!variable.trainable) continue;
    auto& [rule, counts] = member_of(variable);
    for (std::size_t slot = 0; slot < rule->slot_names().size(); ++slot)
      slots_.fill(slot, {variable.offset, variable.offset + variable.shape.num_elements()},
                  rule->initial_value(slot));
    rule->reset_matrices(variable);
    counts.set(variable, counts.initial());
  }
  slots_.to_device();
}

void Optimizer::reset_updates() {
  steps_ = 0;
  for (Member& member : members_) member.counts.reset();
}

std::optional<Tensor> Optimizer::kept_updates(const Variable& variable) const {
  const auto& [rule, counts] = member_of(variable);
  if (!rule->counts_updates()) return std::nullopt;
  const bool is_known = counts.of(variable).updates == steps_ && !rule->depends_on_steps();
  return is_known ? std::nullopt : std::optional(counts.tensor(variable));
}

void Optimizer::restore_updates(std::int64_t step, std::span<const RestoredUpdates> all) {
  steps_ = step;
  struct Computed {
    const UpdateRule* rule;
    UpdateClass updates;
  };
  std::vector<Computed> computed;  // variables with the same number have the same
  for (const auto& [variable, kept] : all) {
    Member& member = member_of(*variable);
    const UpdateRule* const rule = member.rule.get();
    if (!rule->counts_updates()) continue;
    const auto count = static_cast<std::int64_t>(kept.front());
    if (kept.size() == num_kept_updates(*variable)) {
      member.counts.set(*variable, {.updates = count, .numbers = {kept.begin() + 1, kept.end()}});
      continue;
    }
    auto known = std::ranges::find_if(
        computed, [&](const Computed& c) { return c.rule == rule && c.updates.updates == count; });
    if (known == computed.end()) known = computed.insert(known, {rule, rule->updates_of_last(count, step)});
    member.counts.set(*variable, known->updates);
  }
}

void Optimizer::share_measures(const GradientParts& parts) {
  for (const Member& member : members_) member.rule->share_measures(parts);
}

std::vector<MatrixWork*> Optimizer::matrix_work(const UpdateContext& context) {
  std::vector<MatrixWork*> all;
  for (const Member& member : members_)
    if (MatrixWork* const work = member.rule->matrix_work(context);
        work != nullptr && !work->matrices().empty())
      all.push_back(work);
  return all;
}

void Optimizer::begin_step(std::int64_t step) {
  steps_ = step + 1;
  for (auto& [rule, counts] : members_) {
    for (UpdateClass& of : counts.classes()) rule->count_update(step, of);
    rule->begin_step(step);
  }
}

void Optimizer::measure(const UpdateContext& context, const float* gradients) {
  for (const Member& member : members_)
    if (member.rule->measures()) member.rule->measure(context, gradients);
}

std::vector<Optimizer::Segment>::const_iterator Optimizer::segment_at(std::int64_t element) const {
  return std::ranges::upper_bound(segments_, element, {}, &Segment::last);
}

void Optimizer::update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                       const float* gradients, Range range) const {
  if (range.size() <= 0) return;
  auto segment = segment_at(range.first);
  for (std::int64_t first = range.first; first < range.last; ++segment) {
    const std::int64_t last = std::min(segment->last, range.last);
    segment->rule->update(kernels, lane, variables, gradients + (first - range.first), {first, last});
    first = last;
  }
}

void Optimizer::update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                            const Variable& table, const SparseRows& gradient, Range rows) const {
  segment_at(table.offset)->rule->update_rows(kernels, lane, variables, table, gradient, rows);
}

}  // namespace lockstep
