// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to the executor's files: what it keeps per microshard in flight and per meeting.
#pragma once

#include <string>
#include <vector>

#include "train/executor.h"

namespace lockstep {

/// One microshard in flight: its arena and, per operation, the addresses in it.
struct Executor::Slot {
  int index = 0;
  Buffer arena;
  Microshard microshard{};
  LabelBlock labels;       ///< where the loss reads them
  LabelBlock host_labels;  ///< the same in host memory
  struct Call {
    std::vector<ConstData> inputs;
    std::vector<Data> dx, outputs, dy;
    std::vector<ConstData> dy2;
    void* saved;
  };
  std::vector<Call> calls;
  float* features;
  std::vector<const float*> outputs;     ///< by head
  std::vector<LossStage::Place> places;  ///< likewise
};

struct Executor::Meeting {
  SmallSum forward, backward;
  std::vector<const double*> totals;
  std::string forward_name, backward_name;
};

/// An address in an arena; null where the plan has none.
template <typename T>
inline T* at(const Buffer& arena, std::size_t offset) {
  return offset == MemoryPlan::kNone ? nullptr
                                     : reinterpret_cast<T*>(static_cast<char*>(arena.data()) + offset);
}

inline Data data_at(const Buffer& arena, std::size_t offset, DType type) {
  return {at<char>(arena, offset), type};
}

}  // namespace lockstep
