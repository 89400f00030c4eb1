// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include <cstring>

namespace lockstep {

void Optimizer::create_slots(Device& device, const VariableStore& variables) {
  device_ = &device;
  const std::size_t bytes = static_cast<std::size_t>(variables.trainable_elements()) * sizeof(float);
  for (std::size_t i = 0; i < slot_names().size(); ++i) {
    slots_.emplace_back(device, bytes);
    if (!device.is_host()) mirrors_.push_back(Buffer::pinned(device, bytes));
  }
}

void Optimizer::reset_slots() {
  for (Buffer& slot : mirrors_.empty() ? slots_ : mirrors_) std::memset(slot.data(), 0, slot.size_bytes());
  host_is_old_ = false;
  to_device();
}

void Optimizer::to_device() {
  LOCKSTEP_CHECK(!host_is_old_, "old values would overwrite the device's");
  for (std::size_t i = 0; i < mirrors_.size(); ++i)
    device_->copy_from_host(slots_[i].data(), mirrors_[i].data(), slots_[i].size_bytes());
}

Tensor Optimizer::slot_tensor(std::size_t index, const Variable& variable) const {
  if (host_is_old_)
    for (std::size_t i = 0; i < mirrors_.size(); ++i)
      device_->copy_to_host(mirrors_[i].data(), slots_[i].data(), slots_[i].size_bytes());
  host_is_old_ = false;
  const Buffer& buffer = mirrors_.empty() ? slots_[index] : mirrors_[index];
  return {static_cast<float*>(buffer.data()) + variable.offset, DType::f32, variable.shape};
}

}  // namespace lockstep
