// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One microshard in flight: its arena, and the addresses in it that each operation reads and writes.
#pragma once

#include <vector>

#include "core/buffer.h"
#include "core/data.h"
#include "model/memory_plan.h"
#include "train/batch_source.h"
#include "train/loss_stage.h"

namespace lockstep {

/// An address in an arena; null where the plan has none.
template <typename T>
inline T* address_at(const Buffer& arena, std::size_t offset) {
  return offset == MemoryPlan::kNone ? nullptr
                                     : reinterpret_cast<T*>(static_cast<char*>(arena.data()) + offset);
}
inline Data data_at(const Buffer& arena, std::size_t offset, DType type) {
  return {address_at<char>(arena, offset), type};
}

struct MicroshardSlot {
  MicroshardSlot(int number, Device& device, const Graph::Calls& calls, const MemoryPlan& memory);

  int index;
  Buffer arena;
  float* features;
  /// The arrays of a Pass of one operation.
  struct Call {
    std::vector<ConstData> inputs;
    std::vector<Data> dx, outputs, dy;
    std::vector<ConstData> dy2;
    void* saved;
  };
  std::vector<Call> calls;
  /// After the loss, where activations are recomputed; empty: as before it.
  std::vector<Call> recomputed_calls;
  const Call& call(int operation, bool after_loss) const {
    return (after_loss && !recomputed_calls.empty() ? recomputed_calls
                                                    : calls)[static_cast<std::size_t>(operation)];
  }
  std::vector<const float*> outputs;     ///< by head; null where the loss takes 16 bits
  std::vector<LossStage::Place> places;  ///< by head

  // Of the microshard that is in the slot.
  Microshard microshard{};
  LabelBlock labels;       ///< where the loss reads them
  LabelBlock host_labels;  ///< the same in host memory

 private:
  Call make_call(int operation, const Graph::Calls& calls, const MemoryPlan& memory, bool after_loss) const;
};

}  // namespace lockstep
