// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs one layer by itself in one process, for tests of a layer and for the gradient checker. A batch is cut
// into microshards as in training. The leaves of a CollectiveLayer are merged in the order of the
// microshards.
//
//   LayerRunner run(*layer, {Shape{4, 4, 2}}, {.microshards = {3, 2}});
//   run.input(0) = ...;
//   run.forward();
//   run.output_gradient() = ...;
//   run.backward();
//   ... run.input_gradient(0) ...
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "core/planned_merges.h"
#include "model/collective_layer.h"

namespace lockstep {

struct LayerRunnerOptions {
  std::vector<std::int64_t> microshards = {2};  ///< samples of each; 0 is an empty one
  bool training = true;
  /// Inputs that infer() does not see: 1 after fuse(Fusible::addition), else 0. They have the shape of the
  /// first output.
  int fused_inputs = 0;
  /// Passes the output gradient in two parts, if LayerTraits::takes_two_gradients.
  bool two_gradients = false;
  /// Inputs without a gradient (indices, lengths): their gradients stay zero.
  std::vector<int> fixed_inputs = {};
  /// The device to run on; null: the CPU. Inputs and outputs of the runner are always in host memory.
  Device* device = nullptr;
  const KernelTable* kernels = nullptr;
  /// The type of the model's activations. Inputs and output gradients are rounded to the type that the layer
  /// takes; results are converted to float32.
  DType type = DType::f32;
  std::uint64_t seed = 1;  ///< of initial values and random masks
  std::int64_t step = 0;   ///< Pass::step
  /// The variables of these names are frozen.
  std::function<bool(const std::string&)> frozen = {};
};

class LayerRunner {
 public:
  /// Calls infer, declare and prepare; call fuse() before. `inputs` are shapes per sample. The layer must
  /// outlive the runner and belongs to one runner only. All inputs get a gradient, except the fixed ones.
  LayerRunner(Layer& layer, std::span<const Shape> inputs, LayerRunnerOptions options = {});
  LayerRunner(Layer& layer, std::initializer_list<Shape> inputs, LayerRunnerOptions options = {});

  std::int64_t num_samples() const { return num_samples_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  VariableStore& variables() { return variables_; }

  /// All samples of the batch, row-major, for the caller to fill. Initially zero.
  std::vector<float>& input(int i) { return inputs_[static_cast<std::size_t>(i)]; }
  std::vector<float>& output_gradient(int i = 0) { return output_gradients_[static_cast<std::size_t>(i)]; }

  /// Computes all outputs. In training, every call updates the moving statistics of a layer that has them.
  void forward();
  const std::vector<float>& output(int i = 0) const { return outputs_[static_cast<std::size_t>(i)]; }

  /// Computes the gradients of sum(output_gradient * output) over all outputs. Call after forward(). Throws
  /// Error(bug) if the layer overwrites its output gradient without LayerTraits::overwrites_dy.
  void backward();
  const std::vector<float>& input_gradient(int i) const {
    return input_gradients_[static_cast<std::size_t>(i)];
  }
  /// Gradients of the variables, flat as VariableStore::trainable_values(). They are summed over microshards
  /// in double; gaps are zero.
  const std::vector<float>& gradients() const { return gradients_; }
  /// The part of gradients() for one trainable variable.
  std::span<const float> gradient(VariableId id) const;

 private:
  struct Part;  ///< one microshard's memory
  Pass pass(std::size_t shard, float* gradients);
  void start_sums(CollectiveLayer::Reduction reduction);
  double* leaf(CollectiveLayer::Reduction reduction, std::size_t microshard) const;
  std::vector<const double*> reduce(CollectiveLayer::Reduction reduction);
  void reduce_forward();
  void reduce_backward();
  std::vector<std::vector<std::byte>> dy_bits() const;
  bool is_view() const { return layer_.traits().is_view(options_.training); }

  Layer& layer_;
  CollectiveLayer* collective_ = nullptr;  ///< the layer, if it synchronises
  LayerRunnerOptions options_;
  Device& device_;
  const KernelTable& kernels_;
  VariableStore variables_;
  std::vector<std::int64_t> input_elements_, output_elements_;  ///< per sample
  std::vector<DType> input_types_;
  DType output_type_ = DType::f32;
  std::int64_t num_samples_ = 0;
  std::vector<std::vector<float>> inputs_, input_gradients_, outputs_, output_gradients_;
  std::vector<float> gradients_;
  std::vector<std::shared_ptr<Part>> parts_;
  DeviceStream stream_;
  Buffer leaves_, totals_;  ///< of the current reduction: one per microshard; one per group, and two places
  PlannedMerges to_totals_, to_whole_;
  Buffer scratch_, discarded_;
  Lane lane_;
};

}  // namespace lockstep
