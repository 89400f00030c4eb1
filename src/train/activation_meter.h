// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms and moments of the outputs of layers in a training step, over the whole global batch. An
// observer that measures each microshard's output while memory still holds it; afterwards the chief adds the
// microshards in their order.
#pragma once

#include <string>
#include <vector>

#include "core/range.h"
#include "train/distribution_meter.h"
#include "train/step_observer.h"

namespace lockstep {

class ActivationMeter final : public StepObserver {
 public:
  /// One layer, with those that run in its pass: "conv1" and "relu1" are one output, that of relu1.
  struct Output {
    std::string name;                 ///< of the layer whose output it is
    std::vector<std::string> layers;  ///< all that run in the pass
    int operation;
    std::int64_t elements;  ///< per sample
    /// Outputs at these bounds and beyond count as saturated; infinite for layers without bounds.
    DistributionBounds bounds;
    bool is_bounded = false;
  };
  /// Every output that a step computes, except for those that are views.
  static std::vector<Output> outputs_of(const Graph& graph, const Graph::Calls& calls);

  /// `own`: the microshards of this rank; `most_samples`: of the largest one. References outlive the meter.
  ActivationMeter(const ExecutorContext& context, Communicator& control, std::vector<Output> outputs,
                  Range own, std::int64_t most_samples);

  std::span<const Output> outputs() const { return outputs_; }
  /// Called before the step.
  void clear();
  /// Called after the step: the chief gets what all ranks measured. All ranks.
  void gather();
  /// The total of an output, on the chief, after gather().
  DistributionTotal total(std::size_t output) const;

  void fetched(const Microshard& microshard, const Lane&, const float*) override;
  void forward(int operation, const Pass& pass) override;

 private:
  Distribution& sum_of(std::size_t output, std::int64_t shard) {
    return sums_[output * static_cast<std::size_t>(context_.shards) + static_cast<std::size_t>(shard)];
  }

  ExecutorContext context_;
  Communicator& control_;
  std::vector<Output> outputs_;
  std::vector<int> output_of_operation_;  ///< -1: not measured
  Range own_;
  std::vector<std::int64_t> first_piece_;  ///< by output, for one microshard; and the number of all
  std::vector<std::int64_t> samples_;      ///< by own microshard
  Buffer pieces_, buckets_;                ///< on the device: pieces by own microshard, buckets by output
  std::vector<Distribution> host_pieces_;
  std::vector<std::uint32_t> host_buckets_;
  std::vector<Distribution> sums_;     ///< by output and microshard of the batch
  std::vector<std::int64_t> counted_;  ///< samples by microshard of the batch
  std::vector<char> message_;
};

}  // namespace lockstep
