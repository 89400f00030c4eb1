// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer that needs sums over all microshards, such as batch normalisation. A pass has three parts: a local
// part per microshard, which gives some numbers (a leaf); a sum of all leaves along the reduction tree, on
// all ranks; and forward() or backward() per microshard, which use the total. Totals of the forward pass are
// valid until the end of the step: forward() may be called once more in the backward pass (recomputation.h).
#pragma once

#include "model/layer.h"

namespace lockstep {

class CollectiveLayer : public Layer {
 public:
  using Layer::Layer;
  /// How two leaves are merged, in a fixed order. sums: number by number. moments: count, means and sums of
  /// squared deviations (NormKernels::merge_moments).
  enum class Merge { sums, moments };
  /// A sum over microshards.
  struct Reduction {
    int width;  ///< numbers per leaf
    Merge merge;
  };
  struct CollectiveTraits {
    int group_size;  ///< consecutive microshards with one total; 0: all
    Reduction forward, backward;
  };
  /// The totals of all groups, in order, on the device.
  struct Reduced {
    const KernelTable& kernels;
    const Lane& lane;
    VariableStore& variables;
    std::span<const double* const> totals;
    const double* whole;  ///< the totals merged in order; null in the backward pass
  };
  /// The total of one group, which is in the memory of this rank.
  struct ReducedGroup {
    const KernelTable& kernels;
    const Lane& lane;
    const VariableStore& variables;
    int group;
    const double* total;
  };

  /// False: the layer needs no sums, because its statistics are fixed. Only forward() and backward() are
  /// called then. Valid after declare().
  virtual bool synchronises() const { return true; }
  /// Valid after infer().
  virtual CollectiveTraits collective_traits() const = 0;
  /// The local part of the forward pass: fills `leaf` (on the device) for one microshard. Also called with
  /// n == 0, which gives counts of zero.
  virtual void forward_local(const Pass&, double* leaf) = 0;
  /// Called with the totals once per step, on every rank, by one thread. May change non-trainable variables.
  virtual void forward_reduced(const Reduced&) = 0;
  /// forward_local() for the backward pass. May overwrite Pass::dy, like backward().
  virtual void backward_local(const Pass&, double* leaf) = 0;
  virtual void backward_reduced(const Reduced&) = 0;
  /// Prepares forward() and backward() of one group's microshards, where all of them are on one worker.
  /// Workers call it concurrently, for different groups. The calls with all totals follow at the end of the
  /// step.
  virtual void forward_group(const ReducedGroup&) = 0;
  virtual void backward_group(const ReducedGroup&) = 0;
};

}  // namespace lockstep
