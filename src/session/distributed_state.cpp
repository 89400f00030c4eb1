// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/distributed_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "comm/agree.h"
#include "comm/error_feedback.h"
#include "comm/gradient_reducer.h"
#include "comm/ownership.h"
#include "core/range.h"
#include "model/variable_store.h"
#include "optim/matrix_work.h"
#include "optim/optimizer.h"
#include "train/matrix_sharing.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "state of a checkpoint";

std::size_t bytes_of(Range range) { return static_cast<std::size_t>(range.size()) * sizeof(float); }

}  // namespace

std::vector<DistributedTensor> distributed_slots(const Optimizer& optimizer, const VariableStore& variables,
                                                 const Ownership& ownership) {
  std::vector<DistributedTensor::Part> parts;
  for (int rank = 0; rank < ownership.ranks(); ++rank)
    for (const Range& range : ownership.parts(rank)) parts.push_back({range, rank});
  std::ranges::sort(parts, {}, [](const auto& part) { return part.elements.first; });
  const OptimizerSlots& slots = optimizer.slots();
  std::vector<DistributedTensor> all;
  for (std::size_t i = 0; i < optimizer.slot_names().size(); ++i)
    for (const Variable& variable : variables.variables()) {
      if (!variable.trainable || variable.sparse_index >= 0 || optimizer.slot_name(i, variable).empty())
        continue;
      const std::int64_t offset = variable.offset, last = offset + variable.shape.num_elements();
      DistributedTensor tensor{
          .path = fmt::format("slots/{}/{}", optimizer.slot_name(i, variable), variable.name),
          .shape = variable.shape,
          .parts = {},
          .read =
              [&slots, i, offset](Range elements, float* to) {
                std::memcpy(to, slots.values(i) + slots.place(offset + elements.first), bytes_of(elements));
              },
          .write =
              [&slots, i, offset](Range elements, const float* from) {
                std::memcpy(slots.values(i) + slots.place(offset + elements.first), from, bytes_of(elements));
              }};
      for (const auto& part : parts) {
        const Range common{std::max(offset, part.elements.first), std::min(last, part.elements.last)};
        if (common.size() > 0)
          tensor.parts.push_back({{common.first - offset, common.last - offset}, part.rank});
      }
      all.push_back(std::move(tensor));
    }
  return all;
}

std::vector<DistributedTensor> distributed_matrices(MatrixSharing& matrices) {
  MatrixWork& work = matrices.work();
  std::vector<DistributedTensor> all;
  for (std::size_t i = 0; i < work.state().size(); ++i) {
    const MatrixWork::StateTensor& state = work.state()[i];
    const std::int64_t width = state.width;
    const auto matrix_at = [first = state.matrices.first, width](Range elements) {
      return static_cast<std::size_t>(first + elements.first / width);
    };
    DistributedTensor tensor{
        .path = fmt::format("slots/{}/{}", state.slot, state.variable->name),
        .shape = Shape{state.matrices.size(), width},
        .parts = {},
        .read =
            [&work, i, matrix_at](Range elements, float* to) {
              std::fill_n(to, elements.size(), 0.0F);
              work.read_state(i, matrix_at(elements), to);
            },
        .write = [&work, i, matrix_at](
                     Range elements, const float* from) { work.write_state(i, matrix_at(elements), from); }};
    for (std::int64_t row = 0; row < state.matrices.size(); ++row)
      tensor.parts.push_back({{row * width, (row + 1) * width},
                              matrices.owner(static_cast<std::size_t>(state.matrices.first + row))});
    all.push_back(std::move(tensor));
  }
  return all;
}

std::vector<DistributedTensor> distributed_residuals(const GradientReducer& reducer,
                                                     const VariableStore& variables) {
  ErrorFeedback* const feedback = reducer.feedback();
  if (feedback == nullptr) return {};
  std::vector<NodePart> parts = reducer.node_parts();
  std::ranges::sort(parts, {},
                    [](const NodePart& part) { return std::pair(part.node, part.elements.first); });
  std::vector<DistributedTensor> all;
  for (const Variable& variable : variables.variables()) {
    if (!variable.trainable || variable.sparse_index >= 0) continue;
    const std::int64_t offset = variable.offset, count = variable.shape.num_elements();
    const auto node_of = [count](Range elements) { return static_cast<int>(elements.first / count); };
    const auto in_sum = [offset, count](Range elements) {
      const std::int64_t first = offset + elements.first % count;
      return Range{first, first + elements.size()};
    };
    DistributedTensor tensor{
        .path = fmt::format("{}{}", kResiduals, variable.name),
        .shape = Shape{parts.back().node + 1, count},
        .parts = {},
        .read = [=](Range elements, float* to) { feedback->read(node_of(elements), in_sum(elements), to); },
        .write = [=](Range elements,
                     const float* from) { feedback->write(node_of(elements), in_sum(elements), from); }};
    for (const NodePart& part : parts) {
      const std::int64_t first = std::max(offset, part.elements.first),
                         last = std::min(offset + count, part.elements.last),
                         row = part.node * count - offset;
      if (first < last) tensor.parts.push_back({{row + first, row + last}, part.rank});
    }
    all.push_back(std::move(tensor));
  }
  return all;
}

DistributedState::DistributedState(Communicator& communicator, std::vector<DistributedTensor> tensors,
                                   std::int64_t piece_elements)
    : communicator_(communicator), state_(std::move(tensors)), piece_elements_(piece_elements) {
  std::ranges::sort(state_, {}, &DistributedTensor::path);
}

std::vector<CheckpointTensor> DistributedState::tensors() {
  std::vector<CheckpointTensor> tensors;
  for (std::size_t i = 0; i < state_.size(); ++i)
    tensors.push_back({.path = state_[i].path,
                       .tensor = Tensor(nullptr, DType::f32, state_[i].shape),
                       .pieces = [this, i](const CheckpointTensor::Take& to) { take(i, to); }});
  return tensors;
}

void DistributedState::for_parts(const DistributedTensor& tensor, Range piece,
                                 FunctionRef<void(const Part& part, std::int64_t at)> then) {
  auto part =
      std::ranges::upper_bound(tensor.parts, piece.first, {}, [](const Part& p) { return p.elements.last; });
  for (; part != tensor.parts.end() && part->elements.first < piece.last; ++part) {
    const Range common{std::max(piece.first, part->elements.first),
                       std::min(piece.last, part->elements.last)};
    if (common.size() > 0) then({common, part->rank}, common.first - piece.first);
  }
}

void DistributedState::for_pieces(const DistributedTensor& tensor, FunctionRef<void(Range)> then) const {
  const Shape& shape = tensor.shape;
  const std::int64_t count = shape.num_elements(), row = shape.rank() == 0 ? 1 : count / shape[0];
  const std::int64_t at_once = std::max<std::int64_t>(piece_elements_ / row, 1) * row;
  for (std::int64_t first = 0; first < count; first += at_once)
    then({first, std::min(first + at_once, count)});
}

float* DistributedState::piece(std::size_t bytes) {
  if (piece_.size_bytes() < bytes) piece_ = Buffer(cpu_device(), bytes);
  return static_cast<float*>(piece_.data());
}

void DistributedState::send(const DistributedTensor& tensor) {
  for_pieces(tensor, [&](Range now) {
    for_parts(tensor, now, [&](const Part& part, std::int64_t) {
      if (part.rank != communicator_.rank()) return;
      float* const values = piece(bytes_of(part.elements));
      tensor.read(part.elements, values);
      communicator_.send(values, bytes_of(part.elements), 0, kWhat);
    });
  });
}

/// An error of `to` waits until the ranks have sent this tensor.
void DistributedState::take(std::size_t number, const CheckpointTensor::Take& to) {
  LOCKSTEP_CHECK(number == next_, "tensor {} is taken, {} is next", number, next_);
  const DistributedTensor& tensor = state_[number];
  // Before the ranks begin to send: memory may be short.
  std::size_t largest = 0;
  for_pieces(tensor, [&](Range now) { largest = std::max(largest, bytes_of(now)); });
  float* const values = piece(largest);
  char go_on = 1;
  communicator_.broadcast(&go_on, sizeof go_on, 0, kWhat);
  ++next_;
  std::exception_ptr error;
  for_pieces(tensor, [&](Range now) {
    for_parts(tensor, now, [&](const Part& part, std::int64_t at) {
      if (part.rank == 0)
        tensor.read(part.elements, values + at);
      else
        communicator_.receive(values + at, bytes_of(part.elements), part.rank, kWhat);
    });
    if (error) return;
    try {
      to(values, bytes_of(now));
    } catch (...) {
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

void DistributedState::stream(FunctionRef<void()> write) {
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
    if (next_ < state_.size()) communicator_.broadcast(&go_on, sizeof go_on, 0, kWhat);
    piece_ = {};
    if (error) std::rethrow_exception(error);
    return;
  }
  for (const DistributedTensor& tensor : state_) {
    communicator_.broadcast(&go_on, sizeof go_on, 0, kWhat);
    if (go_on == 0) break;
    send(tensor);
  }
  piece_ = {};
}

void DistributedState::restore(FunctionRef<bool(const std::string& path, const Tensor& to)> read) {
  const bool is_chief = communicator_.rank() == 0;
  for (const DistributedTensor& tensor : state_) {
    const Range whole{0, tensor.shape.num_elements()};
    Buffer values;
    char found = 0;
    agree(
        communicator_,
        [&] {
          if (!is_chief) return;
          values = Buffer(cpu_device(), bytes_of(whole));
          found = read(tensor.path, Tensor(values.data(), DType::f32, tensor.shape)) ? 1 : 0;
        },
        "reading the state of the optimizer");
    communicator_.broadcast(&found, sizeof found, 0, "reading the state of the optimizer");
    if (found == 0) continue;
    for_parts(tensor, whole, [&](const Part& part, std::int64_t at) {
      const bool mine = part.rank == communicator_.rank();
      const std::size_t bytes = bytes_of(part.elements);
      if (is_chief && mine) {
        tensor.write(part.elements, static_cast<float*>(values.data()) + at);
      } else if (is_chief) {
        communicator_.send(static_cast<float*>(values.data()) + at, bytes, part.rank, "restored state");
      } else if (mine) {
        float* const to = piece(bytes);
        communicator_.receive(to, bytes, 0, "restored state");
        tensor.write(part.elements, to);
      }
    });
  }
  piece_ = {};
}

}  // namespace lockstep
