// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Forward passes on the CPU for a program that has the samples in its hands: without ranks, batches, threads,
// losses and labels. A PreparedNet is what threads share: layers that are ready for some numbers of samples,
// on a fixed number of lanes. A ForwardPass is what one thread needs in addition: a lane, activations and
// scratch memory.
//
//   PreparedNet net({graph, variables, heads, shards, seed}, sizes, lanes);
//   ForwardPass pass(net, lane);                  // one for each thread, each with a lane of its own
//   std::copy(..., pass.features());              // n samples
//   pass.run(n);                                  // one of `sizes`
//   pass.predict(head, n, rows);
//
// A layer computes as in BatchPredictor: for the same number of samples the bits are the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "kernels/kernel_table.h"
#include "model/graph.h"
#include "model/heads.h"
#include "model/memory_plan.h"
#include "train/microshard_slot.h"

namespace lockstep {

/// Does not change after it is made: threads may use it at the same time, each on a lane of its own.
class PreparedNet {
 public:
  /// All of it outlives the net. The layers of a graph are prepared once.
  struct Parts {
    const Graph& graph;
    const VariableStore& variables;  ///< with their values, which do not change
    const Heads& heads;
    int shards = 1;  ///< of the run
    std::uint64_t seed = 0;
  };
  PreparedNet(const Parts& parts, std::span<const std::int64_t> sizes, int lanes);
  PreparedNet(const PreparedNet&) = delete;
  PreparedNet& operator=(const PreparedNet&) = delete;

  const Parts& parts() const { return parts_; }
  const Graph::Calls& calls() const { return calls_; }
  const MemoryPlan& memory() const { return memory_; }
  std::size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  Parts parts_;
  Graph::Calls calls_;
  MemoryPlan memory_;
  std::size_t scratch_bytes_;
};

/// For one thread at a time.
class ForwardPass {
 public:
  /// The net outlives the pass.
  ForwardPass(const PreparedNet& net, int lane);
  ForwardPass(const ForwardPass&) = delete;
  ForwardPass& operator=(const ForwardPass&) = delete;

  /// Room for the largest number of samples. run() uses its contents up.
  float* features() const { return slot_.features; }
  /// Computes the first n samples of features(). n is one of the sizes of the net. Allocates nothing of its
  /// own.
  void run(std::int64_t n);
  /// What a head predicts for the first n samples of the last run(), n x values of a sample: probabilities
  /// for classes, logits for labels, values in the units of training.
  void predict(int head, std::int64_t n, float* rows) const;
  /// The same before the head's loss has turned them into predictions.
  const float* outputs(int head) const { return slot_.outputs[static_cast<std::size_t>(head)]; }

 private:
  const PreparedNet& net_;
  const KernelTable& kernels_;
  Buffer scratch_;
  Lane lane_;
  MicroshardSlot slot_;
  std::vector<Pass> passes_;  ///< by operation
};

}  // namespace lockstep
