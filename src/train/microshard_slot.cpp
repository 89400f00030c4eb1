// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/microshard_slot.h"

#include <algorithm>

#include "core/error.h"
#include "core/sizes.h"

namespace lockstep {

namespace {

Buffer activations(int microshard, Device& device, const MemoryPlan& memory) {
  Buffer arena;
  allocate_for(fmt::format("the activations of microshard {}", microshard),
               [&] { arena = Buffer(device, memory.total_bytes()); });
  return arena;
}

}  // namespace

MicroshardSlot::MicroshardSlot(int number, Device& device, const Graph::Calls& graph_calls,
                               const MemoryPlan& memory)
    : index(number),
      arena(activations(number, device, memory)),
      features(address_at<float>(arena, memory.value(0))) {
  for (std::size_t head = 0; head < graph_calls.outputs.size(); ++head) {
    const int value = graph_calls.outputs[head];
    const MemoryPlan::Contribution& gradient = memory.loss_gradient(static_cast<int>(head));
    const DType type = graph_calls.values[static_cast<std::size_t>(value)].type;
    const Data output = data_at(arena, memory.value(value), type);
    outputs.push_back(type == DType::f32 ? output.f32() : nullptr);
    const std::size_t into = gradient.accumulate ? memory.value_gradient(value) : MemoryPlan::kNone;
    places.push_back({output, data_at(arena, gradient.offset, type), data_at(arena, into, type)});
  }
  const bool recomputes = std::ranges::any_of(graph_calls.operations, &Graph::Operation::recomputed);
  for (int i = 0; i < static_cast<int>(graph_calls.operations.size()); ++i) {
    calls.push_back(make_call(i, graph_calls, memory, false));
    if (recomputes) recomputed_calls.push_back(make_call(i, graph_calls, memory, true));
  }
}

MicroshardSlot::Call MicroshardSlot::make_call(int number, const Graph::Calls& graph_calls,
                                               const MemoryPlan& memory, bool after_loss) const {
  const Graph::Operation& operation = graph_calls.operations[static_cast<std::size_t>(number)];
  const auto type_of = [&](int value) { return graph_calls.values[static_cast<std::size_t>(value)].type; };
  const auto place_of = [&](int value) {
    return after_loss && graph_calls.reads_recomputed(operation, value) ? memory.recomputed_value(value)
                                                                        : memory.value(value);
  };
  Call call{};
  for (std::size_t input = 0; input < operation.inputs.size(); ++input) {
    const int value = operation.inputs[input];
    call.inputs.push_back(data_at(arena, place_of(value), type_of(value)));
    call.dx.push_back(
        data_at(arena, memory.contribution(number, static_cast<int>(input)).offset, type_of(value)));
  }
  for (const int value : operation.outputs) {
    call.outputs.push_back(data_at(arena, place_of(value), type_of(value)));
    call.dy.push_back(data_at(arena, memory.value_gradient(value), type_of(value)));
    call.dy2.push_back(data_at(arena, memory.second_gradient(value), type_of(value)));
  }
  call.saved = address_at<char>(
      arena, after_loss && operation.recomputed ? memory.recomputed_saved(number) : memory.saved(number));
  return call;
}

}  // namespace lockstep
