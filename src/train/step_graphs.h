// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of a step that are the same in every step, recorded once and launched as one: on a GPU the many small
// kernels of a step cost their launching, not their work. On the CPU there is nothing to record.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device.h"
#include "core/function_ref.h"

namespace lockstep {

class StepGraphs {
 public:
  /// What a recording is valid for: the part of the step, which memory its input comes from, the samples of
  /// the batch, and the loss scale.
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

  /// `work` puts into the stream what is the same each time for `key`. The first time it does so, the second
  /// time it is recorded, from then on the recording is launched. `may_record` false: it does so anyway.
  void run(const Key& key, bool may_record, FunctionRef<void()> work);
  int num_recorded() const;

 private:
  struct Recording {
    Key key;
    void* graph;  ///< null until recorded
  };
  /// Sizes of batches are few, the full one and an epoch's last, and so are loss scales. More would be a sign
  /// of something else.
  static constexpr std::size_t kMost = 4096;

  Device& device_;
  void* stream_;
  std::vector<Recording> recordings_;
};

}  // namespace lockstep
