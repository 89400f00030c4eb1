// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/sharded_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "comm/agree.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "slots of a checkpoint";

std::size_t bytes_of(Range range) { return static_cast<std::size_t>(range.size()) * sizeof(float); }

}  // namespace

ShardedSlots::ShardedSlots(Communicator& communicator, const Optimizer& optimizer,
                           const VariableStore& variables, const Ownership& ownership,
                           std::int64_t piece_elements)
    : communicator_(communicator), optimizer_(optimizer), piece_elements_(piece_elements) {
  for (std::size_t i = 0; i < optimizer.slot_names().size(); ++i)
    for (const Variable& variable : variables.variables())
      if (variable.trainable && variable.sparse_index < 0 && !optimizer.slot_name(i, variable).empty())
        slots_.push_back(
            {fmt::format("slots/{}/{}", optimizer.slot_name(i, variable), variable.name), i, &variable});
  std::ranges::sort(slots_, {}, &Slot::path);
  for (int rank = 0; rank < ownership.ranks(); ++rank)
    for (const Range& range : ownership.parts(rank)) parts_.push_back({range, rank});
  std::ranges::sort(parts_, {}, [](const Part& part) { return part.range.first; });
}

std::vector<CheckpointTensor> ShardedSlots::tensors() {
  std::vector<CheckpointTensor> tensors;
  for (std::size_t i = 0; i < slots_.size(); ++i)
    tensors.push_back({.path = slots_[i].path,
                       .tensor = Tensor(nullptr, DType::f32, slots_[i].variable->shape),
                       .pieces = [this, i](const CheckpointTensor::Take& to) { take(i, to); }});
  return tensors;
}

float* ShardedSlots::address(const Slot& slot, std::int64_t element) const {
  return optimizer_.slot(slot.index) + optimizer_.place_in_slot(element);
}

void ShardedSlots::for_parts(Range range, Pieces then) const {
  auto part = std::ranges::upper_bound(parts_, range.first, {}, [](const Part& p) { return p.range.first; });
  for (--part; part != parts_.end() && part->range.first < range.last; ++part) {
    const Range common{std::max(range.first, part->range.first), std::min(range.last, part->range.last)};
    if (common.size() > 0) then({common, part->rank}, common.first - range.first);
  }
}

void ShardedSlots::for_pieces(const Slot& slot, FunctionRef<void(Range)> then) const {
  const Shape& shape = slot.variable->shape;
  const std::int64_t count = shape.num_elements(), row = shape.rank() == 0 ? 1 : count / shape[0];
  const std::int64_t at_once = std::max<std::int64_t>(piece_elements_ / row, 1) * row;
  for (std::int64_t first = 0; first < count; first += at_once)
    then({slot.variable->offset + first, slot.variable->offset + std::min(first + at_once, count)});
}

void ShardedSlots::send(const Slot& slot) const {
  for_pieces(slot, [&](Range piece) {
    for_parts(piece, [&](const Part& part, std::int64_t) {
      if (part.rank == communicator_.rank())
        communicator_.send(address(slot, part.range.first), bytes_of(part.range), 0, kWhat);
    });
  });
}

/// An error of `to` waits until the ranks have sent this slot.
void ShardedSlots::take(std::size_t number, const CheckpointTensor::Take& to) {
  LOCKSTEP_CHECK(number == next_, "slot {} is taken, {} is next", number, next_);
  // Before the ranks begin to send: memory may be short.
  std::size_t largest = 0;
  for_pieces(slots_[number], [&](Range piece) { largest = std::max(largest, bytes_of(piece)); });
  if (piece_.size_bytes() < largest) piece_ = Buffer(cpu_device(), largest);
  char go_on = 1;
  communicator_.broadcast(&go_on, sizeof go_on, 0, kWhat);
  ++next_;
  std::exception_ptr error;
  for_pieces(slots_[number], [&](Range piece) {
    auto* const values = static_cast<float*>(piece_.data());
    for_parts(piece, [&](const Part& part, std::int64_t at) {
      if (part.rank == 0)
        std::memcpy(values + at, address(slots_[number], part.range.first), bytes_of(part.range));
      else
        communicator_.receive(values + at, bytes_of(part.range), part.rank, kWhat);
    });
    if (error) return;
    try {
      to(values, bytes_of(piece));
    } catch (...) {
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

void ShardedSlots::stream(FunctionRef<void()> write) {
  char go_on = 0;
  next_ = 0;
  if (communicator_.rank() == 0) {
    std::exception_ptr error;
    try {
      write();
    } catch (const Error& failed) {
      if (failed.kind() == ErrorKind::communication) throw;
      error = std::current_exception();
    } catch (...) {
      error = std::current_exception();
    }
    if (next_ < slots_.size()) communicator_.broadcast(&go_on, sizeof go_on, 0, kWhat);
    piece_ = {};
    if (error) std::rethrow_exception(error);
    return;
  }
  for (const Slot& slot : slots_) {
    communicator_.broadcast(&go_on, sizeof go_on, 0, kWhat);
    if (go_on == 0) return;
    send(slot);
  }
}

void ShardedSlots::restore(FunctionRef<bool(const std::string& path, const Tensor& to)> read) {
  const bool is_chief = communicator_.rank() == 0;
  for (const Slot& slot : slots_) {
    const Range whole{slot.variable->offset, slot.variable->offset + slot.variable->shape.num_elements()};
    Buffer values;
    char found = 0;
    agree(
        communicator_,
        [&] {
          if (!is_chief) return;
          values = Buffer(cpu_device(), bytes_of(whole));
          found = read(slot.path, Tensor(values.data(), DType::f32, slot.variable->shape)) ? 1 : 0;
        },
        "reading slots");
    communicator_.broadcast(&found, sizeof found, 0, "reading slots");
    if (found == 0) continue;
    for_parts(whole, [&](const Part& part, std::int64_t at) {
      const bool mine = part.rank == communicator_.rank();
      const float* const from = is_chief ? static_cast<float*>(values.data()) + at : nullptr;
      if (is_chief && mine)
        std::memcpy(address(slot, part.range.first), from, bytes_of(part.range));
      else if (is_chief)
        communicator_.send(from, bytes_of(part.range), part.rank, "restored slots");
      else if (mine)
        communicator_.receive(address(slot, part.range.first), bytes_of(part.range), 0, "restored slots");
    });
  }
}

}  // namespace lockstep
