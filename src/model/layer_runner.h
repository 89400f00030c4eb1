// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs one layer by itself, in one process: for tests of a layer, one's own included, and for the gradient
// checker. A batch is cut into microshards like in training; a CollectiveLayer's meetings are held along them
// in order.
//
//   LayerRunner run(*layer, {Shape{4, 4, 2}}, {.microshards = {3, 2}});
//   run.input(0) = ...;  run.forward();  run.output_gradient() = ...;  run.backward();  run.input_gradient(0)
//   ...
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "model/collective_layer.h"

namespace lockstep {

struct LayerRunnerOptions {
  std::vector<std::int64_t> microshards = {2};  ///< samples of each; 0 is an empty one
  bool training = true;
  /// Inputs that infer() is not told of: 1 after fuse(Fusible::addition), else 0. They have the shape of the
  /// first output.
  int fused_inputs = 0;
  /// Gives a layer that LayerTraits::takes_two_gradients its output gradient in two parts.
  bool two_gradients = false;
  /// Inputs that nobody differentiates (indices, lengths): their gradients stay zero.
  std::vector<int> fixed_inputs = {};
  /// What it runs on; null: the CPU. Inputs and outputs are in host memory all the same.
  Device* device = nullptr;
  const KernelTable* kernels = nullptr;
  /// In which the model holds its activations. Inputs and output gradients are rounded to what the layer
  /// asks for, results come back in float32.
  DType type = DType::f32;
  std::uint64_t seed = 1;  ///< of initial values and dropout masks
  std::int64_t step = 0;   ///< global step that the layer is told
};

class LayerRunner {
 public:
  /// Calls infer, declare and prepare; fuse() must come before. `inputs` are shapes per sample. The layer
  /// must outlive the runner and serves one runner only. All inputs want a gradient but for
  /// the fixed ones.
  LayerRunner(Layer& layer, std::span<const Shape> inputs, LayerRunnerOptions options = {});
  LayerRunner(Layer& layer, std::initializer_list<Shape> inputs, LayerRunnerOptions options = {});

  std::int64_t num_samples() const { return num_samples_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  VariableStore& variables() { return variables_; }

  /// All samples of the batch, row-major; to be filled. Zero at first.
  std::vector<float>& input(int i) { return inputs_[static_cast<std::size_t>(i)]; }
  std::vector<float>& output_gradient(int i = 0) { return output_gradients_[static_cast<std::size_t>(i)]; }

  /// Fills all outputs. A layer with moving statistics moves them at every call while training.
  void forward();
  const std::vector<float>& output(int i = 0) const { return outputs_[static_cast<std::size_t>(i)]; }

  /// After forward(): gradients of sum(output_gradient * output), over all outputs. All overwritten. Throws
  /// Error(bug) if the layer overwrites its output gradient without LayerTraits::overwrites_dy.
  void backward();
  const std::vector<float>& input_gradient(int i) const {
    return input_gradients_[static_cast<std::size_t>(i)];
  }
  /// Flat, like VariableStore::trainable_values(): summed over microshards in double, gaps zero.
  const std::vector<float>& gradients() const { return gradients_; }
  /// The part of gradients() that belongs to a trainable variable.
  std::span<const float> gradient(VariableId id) const;

 private:
  struct Part;  ///< one microshard's memory
  Pass pass(std::size_t shard, float* gradients);
  std::vector<const double*> meet(CollectiveLayer::Reduction reduction);
  void meet_forward();
  void meet_backward();
  std::vector<std::vector<std::byte>> dy_bits() const;
  bool is_view() const { return layer_.traits().is_view(options_.training); }

  Layer& layer_;
  CollectiveLayer* collective_;
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
  std::vector<Buffer> leaves_;  ///< of the meeting that is held
  Buffer scratch_;
  Lane lane_;
};

}  // namespace lockstep
