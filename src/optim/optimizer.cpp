// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/range.h"
#include "core/sizes.h"

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

}  // namespace

Optimizer::Optimizer(ScheduledNumber&& learning_rate, bool lazy)
    : learning_rate_(scheduled(std::move(learning_rate))),
      rate_text_(learning_rate_.written()),
      lazy_(lazy) {}

Optimizer::Optimizer(const Optimizer& first, bool lazy)
    : learning_rate_(first.learning_rate_), rate_text_(first.rate_text_), lazy_(lazy) {}

float Optimizer::initial_value(std::size_t) const { return 0; }

std::string Optimizer::describe() const {
  const std::string rule = formula();
  return fmt::format("{}: {}{}lr = {}{}", kind(), rule, rule.empty() ? "" : "; ", rate_text_,
                     lazy_ ? "; lazy: rows that a step does not touch stay as they are" : "");
}

std::vector<ScheduledNumber*> Optimizer::all_numbers() {
  std::vector<ScheduledNumber*> all;
  for (ScheduledNumber& number : numbers_)
    if (!number.follows()) all.push_back(&number);
  return all;
}

void Optimizer::follow(const Optimizer& other, double factor, std::string_view but) {
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const bool is_rate = numbers_[i].option() == "learning_rate";
    if (numbers_[i].option() != but) numbers_[i].follow(other.numbers_[i], is_rate ? factor : 1);
  }
  if (factor != 1) rate_text_ = fmt::format("{} * {}", factor, rate_text_);
}

void Optimizer::join(const Optimizer& whole, Device& device, const VariableStore& variables,
                     std::span<const VariableId> own) {
  require_device(device);
  whole_ = &whole;
  for (const VariableId id : own) own_.push_back(variables[id].offset);
  set_own(device, variables, own);
}

void Optimizer::set_own(Device& device, const VariableStore& variables, std::span<const VariableId> own) {
  counts_.set_variables(variables, own, initial_numbers_);
  set_variables(device, variables, own);
}

bool Optimizer::owns(const Variable& variable) const {
  return variable.trainable && (whole_ == nullptr || std::ranges::binary_search(own_, variable.offset));
}

void Optimizer::require_device(const Device& device) const {
  if (!device.is_host() && !updates_on_devices())
    throw Error(ErrorKind::config,
                fmt::format("the optimizer {} updates variables in host memory only", kind()), {},
                "Train on the CPU (device: cpu). A rule that also works on a GPU is a derived class of "
                "ElementRule (docs/adding_an_optimizer.md).");
}

void Optimizer::create_slots(Device& device, const VariableStore& variables, std::vector<Range> held) {
  require_device(device);
  if (!held.empty() && !updates_parts())
    throw Error(ErrorKind::config,
                fmt::format("optimizer.shard: {} needs whole variables on each rank", subject()), {},
                "Remove shard, or use a rule that updates each element alone (docs/sharding.md).");
  device_ = &device;
  held_ = std::move(held);
  places_.clear();
  std::int64_t elements = 0;
  for (const Range& part : held_) {
    places_.push_back(elements);
    elements += part.size();
  }
  if (held_.empty()) elements = variables.trainable_elements();
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  for (std::size_t i = 0; i < slot_names().size(); ++i) {
    allocate_for(fmt::format("slot {} of the optimizer", slot_names()[i]),
                 [&] { slots_.emplace_back(device, bytes); });
    if (!device.is_host()) mirrors_.push_back(Buffer::pinned(device, bytes));
  }
  set_own(device, variables, trainable_in_order(variables));
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (initial_value(i) != 0) return reset_slots();
}

std::int64_t Optimizer::place_in_parts(std::int64_t first) const {
  const auto after = std::ranges::upper_bound(held_, first, {}, &Range::first);
  LOCKSTEP_CHECK(after != held_.begin() && first < (after - 1)->last, "element {} is not held here", first);
  return places_[static_cast<std::size_t>(after - held_.begin() - 1)] + first - (after - 1)->first;
}

std::size_t Optimizer::slot_bytes() const {
  std::size_t bytes = 0;
  for (const Buffer& slot : slots_) bytes += slot.size_bytes();
  return bytes;
}

void Optimizer::reset_slots() {
  std::vector<Buffer>& on_host = mirrors_.empty() ? slots_ : mirrors_;
  for (std::size_t i = 0; i < on_host.size(); ++i) fill_with_initial(i, on_host[i].as<float>());
  host_is_old_ = false;
  to_device();
  reset_updates();
}

void Optimizer::begin_anew(const VariableStore& variables, std::span<const VariableId> ids) {
  fetch_slots();
  std::vector<Buffer>& on_host = mirrors_.empty() ? slots_ : mirrors_;
  const Range all{0, variables.trainable_elements()};
  for (const VariableId id : ids) {
    const Variable& variable = variables[id];
    if (!variable.trainable) continue;
    Optimizer& rule = rule_of(variable);
    const Range own{variable.offset, variable.offset + variable.shape.num_elements()};
    for (std::size_t slot = 0; slot < rule.slot_names().size(); ++slot)
      for (const Range& part : held_.empty() ? std::span(&all, 1) : held()) {
        const Range common{std::max(own.first, part.first), std::min(own.last, part.last)};
        if (common.size() > 0)
          std::fill_n(on_host[slot].as<float>().begin() + place_in_slot(common.first), common.size(),
                      rule.initial_value(slot));
      }
    rule.reset_matrices(variable);
    rule.counts_.set(variable, rule.counts_.initial());
  }
  to_device();
}

void Optimizer::fill_with_initial(std::size_t slot, std::span<float> values) const {
  std::ranges::fill(values, initial_value(slot));
}

void Optimizer::to_device() {
  LOCKSTEP_CHECK(!host_is_old_, "old values would overwrite the device's");
  for (std::size_t i = 0; i < mirrors_.size(); ++i)
    device_->copy_from_host(slots_[i].data(), mirrors_[i].data(), slots_[i].size_bytes());
}

void Optimizer::fetch_slots() const {
  if (host_is_old_)
    for (std::size_t i = 0; i < mirrors_.size(); ++i)
      device_->copy_to_host(mirrors_[i].data(), slots_[i].data(), slots_[i].size_bytes());
  host_is_old_ = false;
}

Tensor Optimizer::slot_tensor(std::size_t index, const Variable& variable) const {
  fetch_slots();
  const Buffer& buffer = mirrors_.empty() ? slots_[index] : mirrors_[index];
  return {static_cast<float*>(buffer.data()) + place_in_slot(variable.offset), DType::f32, variable.shape};
}

void Optimizer::begin_step(std::int64_t step) {
  step_ = step;
  steps_ = step + 1;
  for (UpdateClass& of : counts_.classes()) count_update(step, of);
  prepare(step);
}

void Optimizer::reset_updates() {
  steps_ = 0;
  counts_.reset();
}

void Optimizer::count_update(std::int64_t step, UpdateClass& of) const {
  ++of.updates;
  for (const MeanDecay& decay : corrected_) decay.count(step, of);
  count(step, of);
}

/// `count` updates in the last steps before `step`.
UpdateClass Optimizer::updates_of_last(std::int64_t count, std::int64_t step) const {
  UpdateClass updates = counts_.initial();
  if (updates.numbers.empty()) return {.updates = count};
  for (std::int64_t i = step - count; i < step; ++i) count_update(std::max(i, std::int64_t{0}), updates);
  return updates;
}

std::optional<Tensor> Optimizer::kept_updates(const Variable& variable) const {
  const Optimizer& rule = rule_of(variable);
  if (!rule.counts_updates()) return std::nullopt;
  const bool is_known = rule.counts_.of(variable).updates == steps_ &&
                        std::ranges::none_of(rule.corrected_, &MeanDecay::has_numbers);
  return is_known ? std::nullopt : std::optional(rule.counts_.tensor(variable));
}

void Optimizer::restore_updates(std::int64_t step, std::span<const RestoredUpdates> all) {
  steps_ = step;
  struct Computed {
    const Optimizer* rule;
    UpdateClass updates;
  };
  std::vector<Computed> computed;  // variables with the same number have the same
  for (const auto& [variable, kept] : all) {
    Optimizer& rule = rule_of(*variable);
    if (!rule.counts_updates()) continue;
    const auto count = static_cast<std::int64_t>(kept.front());
    if (kept.size() == num_kept_updates(*variable)) {
      rule.counts_.set(*variable, {.updates = count, .numbers = {kept.begin() + 1, kept.end()}});
      continue;
    }
    auto known = std::ranges::find_if(
        computed, [&](const Computed& c) { return c.rule == &rule && c.updates.updates == count; });
    if (known == computed.end()) known = computed.insert(known, {&rule, rule.updates_of_last(count, step)});
    rule.counts_.set(*variable, known->updates);
  }
}

void Optimizer::update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
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
