// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/device.h"
#include "core/error.h"
#include "core/sizes.h"
#include "model/variable_store.h"

namespace lockstep {

void OptimizerSlots::create(Device& device, std::int64_t elements, std::span<const std::string_view> names,
                            std::vector<Range> held) {
  device_ = &device;
  held_ = std::move(held);
  if (!held_.empty()) elements = 0;
  for (const Range& part : held_) {
    places_.push_back(elements);
    elements += part.size();
  }
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  for (const std::string_view name : names) {
    allocate_for(fmt::format("slot {} of the optimizer", name), [&] { slots_.emplace_back(device, bytes); });
    if (!device.is_host()) mirrors_.push_back(Buffer::pinned(device, bytes));
  }
}

std::int64_t OptimizerSlots::place_in_parts(std::int64_t element) const {
  const auto after = std::ranges::upper_bound(held_, element, {}, &Range::first);
  LOCKSTEP_CHECK(after != held_.begin() && element < (after - 1)->last, "element {} is not held here",
                 element);
  return places_[static_cast<std::size_t>(after - held_.begin() - 1)] + element - (after - 1)->first;
}

std::size_t OptimizerSlots::bytes() const {
  std::size_t bytes = 0;
  for (const Buffer& slot : slots_) bytes += slot.size_bytes();
  return bytes;
}

Tensor OptimizerSlots::tensor(std::size_t slot, const Variable& variable) const {
  to_host();
  return {static_cast<float*>(on_host(slot).data()) + place(variable.offset), DType::f32, variable.shape};
}

void OptimizerSlots::to_host() const {
  if (host_is_old_)
    for (std::size_t i = 0; i < mirrors_.size(); ++i)
      device_->copy_to_host(mirrors_[i].data(), slots_[i].data(), slots_[i].size_bytes());
  host_is_old_ = false;
}

void OptimizerSlots::clear() {
  for (std::size_t i = 0; i < slots_.size(); ++i) std::ranges::fill(on_host(i).as<float>(), 0.0F);
  host_is_old_ = false;
}

void OptimizerSlots::fill(std::size_t slot, Range range, float value) {
  for (const Range& part : held_.empty() ? std::span(&range, 1) : held()) {
    const Range common{std::max(range.first, part.first), std::min(range.last, part.last)};
    if (common.size() > 0)
      std::fill_n(static_cast<float*>(on_host(slot).data()) + place(common.first), common.size(), value);
  }
}

void OptimizerSlots::to_device() {
  LOCKSTEP_CHECK(!host_is_old_, "old values would overwrite the device's");
  for (std::size_t i = 0; i < mirrors_.size(); ++i)
    device_->copy_from_host(slots_[i].data(), mirrors_[i].data(), slots_[i].size_bytes());
}

}  // namespace lockstep
