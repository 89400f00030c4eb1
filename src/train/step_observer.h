// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks into a training step while it runs: what each layer gave for each microshard. The executor calls it
// right behind the layer, while the memory still holds the values; without an observer this costs one
// comparison of a pointer per layer and microshard.
//
// Operations are numbered as in Executor::calls(). Called on compute threads, several microshards at once,
// each microshard's calls in order; met() on the main thread. Microshards without samples are left out.
// Pointers are into the device's memory, and on a device with queues the work may still be in lane.stream.
#pragma once

#include <span>

#include "model/layer.h"
#include "train/loss_stage.h"

namespace lockstep {

struct Microshard;

class StepObserver {
 public:
  virtual ~StepObserver() = default;

  virtual void fetched(const Microshard&, const Lane&, const float* features) = 0;
  /// pass.outputs are there.
  virtual void forward(int operation, const Pass& pass) = 0;
  /// By head; the places' d_outputs are there: the gradients that backward begins with.
  virtual void lost(const Microshard&, const Lane&, std::span<const HeadSums>,
                    std::span<const LossStage::Place>) = 0;
  /// pass.dx are there, each as this operation gave it: nothing is added to it yet. So are the gradients of
  /// the layer's variables, unless the layer is a collective one.
  virtual void backward(int operation, const Pass& pass) = 0;
  /// The gradients of a collective layer's variables are there.
  virtual void backward_local(int operation, const Pass& pass) = 0;
  /// Microshards have met: the totals of all groups, the same on all ranks.
  virtual void met(int operation, bool backward, std::span<const double* const> totals) = 0;
};

}  // namespace lockstep
