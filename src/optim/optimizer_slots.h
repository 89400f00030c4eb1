// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory of an optimizer: slots, flat allocations with the layout of the trainable variables, such as the
// moments of Adam. A rank may hold parts of them only (docs/sharding.md). On a GPU each slot has a copy in
// pinned host memory, through which it is read and changed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "core/range.h"
#include "core/tensor.h"

namespace lockstep {

struct Variable;

class OptimizerSlots {
 public:
  OptimizerSlots() = default;
  OptimizerSlots(const OptimizerSlots&) = delete;
  OptimizerSlots& operator=(const OptimizerSlots&) = delete;

  /// Once: slots of `elements` numbers, all 0. `names`: theirs, for messages. `held`: the parts of the flat
  /// range that this rank holds, ascending; empty: all of it. The device outlives the slots.
  void create(Device& device, std::int64_t elements, std::span<const std::string_view> names,
              std::vector<Range> held);

  std::size_t count() const { return slots_.size(); }
  /// A slot on the device, flat like VariableStore::trainable_values(); where only parts are held, one after
  /// the other.
  float* values(std::size_t slot) const { return static_cast<float*>(slots_[slot].data()); }
  /// Where the number of flat element `element` is in values(): that part is held here.
  std::int64_t place(std::int64_t element) const { return held_.empty() ? element : place_in_parts(element); }
  /// The parts that are held; empty: all of the flat range.
  std::span<const Range> held() const { return held_; }
  std::size_t bytes() const;

  /// Marks the host's copy, where there is one, as outdated: the slots changed on the device.
  void device_changed() { host_is_old_ = !mirrors_.empty(); }
  /// The part of a slot that belongs to a variable, which must be held whole, in host memory, with the
  /// device's current values. to_device() copies changes back.
  Tensor tensor(std::size_t slot, const Variable& variable) const;
  /// Copies the device's current values to the host.
  void to_host() const;
  /// Sets all numbers on the host to 0.
  void clear();
  /// Sets what is held of a flat range on the host to `value`.
  void fill(std::size_t slot, Range range, float value);
  void to_device();

 private:
  std::int64_t place_in_parts(std::int64_t element) const;
  const Buffer& on_host(std::size_t slot) const { return mirrors_.empty() ? slots_[slot] : mirrors_[slot]; }

  Device* device_ = nullptr;
  std::vector<Range> held_;           ///< empty: all
  std::vector<std::int64_t> places_;  ///< of each held part in the slots
  std::vector<Buffer> slots_;
  std::vector<Buffer> mirrors_;  ///< pinned host copies; empty on the CPU
  mutable bool host_is_old_ = false;
};

}  // namespace lockstep
