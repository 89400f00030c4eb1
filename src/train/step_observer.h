// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks into a training step while it runs: sees what each layer computes for each microshard. The executor
// calls the observer immediately after the layer, while memory still holds the values. Without an observer,
// that costs one comparison of a pointer per layer and microshard.
//
// Operations are numbered as in Executor::calls(). Workers call the observer concurrently, each microshard's
// calls in order; synchronised() is called on the main thread. Microshards without samples are skipped.
// Pointers are into the device's memory; on a device with streams the work may still be in lane.stream.
#pragma once

#include <span>

#include "model/layer.h"
#include "train/batch_source.h"
#include "train/loss_stage.h"

namespace lockstep {

class StepObserver {
 public:
  virtual ~StepObserver() = default;

  virtual void fetched(const Microshard&, const Lane&, const float* /*features*/) {}
  /// pass.outputs are computed.
  virtual void forward(int /*operation*/, const Pass& /*pass*/) {}
  /// The sums by head. The places' d_outputs are computed: the gradients that backward begins with. The
  /// labels of all heads are in host memory (Heads::labels_of).
  virtual void lost(const Microshard&, const Lane&, std::span<const HeadSums>,
                    std::span<const LossStage::Place>, const LabelBlock& /*labels*/) {}
  /// pass.dx are computed, before contributions of other operations are added. So are the gradients of the
  /// layer's variables, except for a collective layer.
  virtual void backward(int /*operation*/, const Pass& /*pass*/) {}
  /// The gradients of a collective layer's variables are computed.
  virtual void backward_local(int /*operation*/, const Pass& /*pass*/) {}
  /// After a synchronisation point: the totals of all groups, the same on all ranks.
  virtual void synchronised(int /*operation*/, bool /*backward*/, std::span<const double* const> /*totals*/) {
  }
};

}  // namespace lockstep
