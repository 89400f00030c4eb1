// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Recordings of those parts of a step that are the same in every step. On a GPU, launching the many small
// kernels of a step costs more than their work, so a recorded part is launched as one. On the CPU nothing is
// recorded.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device.h"
#include "core/function_ref.h"

namespace lockstep {

class StepGraphs {
 public:
  /// What a recording is valid for: the part of the step, the memory that its input comes from, the number of
  /// samples of the batch, and the loss scale.
  struct Key {
    int part = 0, side = 0;
    std::int64_t count = 0;
    double loss_scale = 1;
    friend bool operator==(const Key&, const Key&) = default;
  };

  StepGraphs(Device& device, void* stream);
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  /// Runs `work`, which puts the same work into the stream each time for `key`: calls it the first time,
  /// records it the second time, and from then on launches the recording. If `may_record` is false, calls it.
  void run(const Key& key, bool may_record, FunctionRef<void()> work);

 private:
  struct Recording {
    Key key;
    void* graph;  ///< null until recorded
  };
  /// The number of keys is small: a step has few parts, batch sizes and loss scales.
  static constexpr std::size_t kMost = 4096;

  Device& device_;
  void* stream_;
  std::vector<Recording> recordings_;
};

}  // namespace lockstep
