// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The interface of a layer. A layer computes one microshard per call, on one worker thread; its arithmetic
// must not depend on which thread or rank that is. Activations are channels last: n samples of the shape that
// infer() returned.
//
// Order of calls: infer, declare, fuse (0 to n times), prepare once per mode; then in each step
// refresh_weights once, and forward and backward for each microshard; before backward, forward may be called
// once more with the same numbers (recomputation.h). A layer allocates nothing in a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data.h"
#include "core/shape.h"
#include "kernels/kernel_table.h"
#include "model/layer_traits.h"
#include "model/variable_store.h"

namespace lockstep {

/// The argument of prepare(): for what a layer makes its primitives and buffers.
struct PrepareContext {
  const KernelTable& kernels;
  Device& device;
  int lanes;  ///< worker threads that may call the layer at the same time
  bool training;
  std::span<const std::int64_t> sample_counts;  ///< every microshard size > 0 that will occur
  std::span<const bool> wants_input_gradient;   ///< per input; all false in inference
  int shards = 1;                               ///< microshards of a global batch
  DType type = DType::f32;                      ///< in which the model holds its activations

  /// The size of the largest microshard; 0 without any.
  std::int64_t max_samples() const {
    return sample_counts.empty() ? 0 : *std::max_element(sample_counts.begin(), sample_counts.end());
  }
};

/// Memory that a layer needs in the mode that was prepared.
struct LayerMemory {
  std::size_t saved_bytes = 0;    ///< Pass::saved, for a microshard of max_samples(); 0 in inference
  std::size_t scratch_bytes = 0;  ///< Pass::lane.scratch
};

/// One microshard's pass through one layer. All arrays hold n samples.
struct Pass {
  const KernelTable& kernels;
  const Lane& lane;
  const VariableStore& variables;
  bool training;
  std::int64_t n;  ///< samples of this microshard, > 0
  int shard;       ///< its number in the global batch
  std::uint64_t seed;
  std::int64_t step;          ///< global step
  std::int64_t first_sample;  ///< the position of its first sample in the global batch
  const ConstData* inputs;    ///< in the types of LayerTraits::inputs
  const Data* outputs;
  /// LayerMemory::saved_bytes, kept from forward to backward of this microshard; null in inference.
  void* saved;
  /// backward: the gradient of each output, in its type. Null for an output that no later layer
  /// differentiates, but never for all outputs. Nobody reads it after this call, so a layer with
  /// LayerTraits::overwrites_dy may overwrite it.
  const Data* dy;
  /// backward: a second contribution to be added to dy, with LayerTraits::takes_two_gradients; null if there
  /// is one contribution only.
  const ConstData* dy2;
  /// backward: the gradient of each input, in its type, to be overwritten. Null where it is not wanted.
  const Data* dx;
  float* gradients;  ///< backward: this microshard's gradients of the flat range from gradient_base on
  std::int64_t gradient_base;
  const SparseRows* sparse_gradients = nullptr;  ///< backward: this microshard's, by Variable::sparse_index
  float* discarded = nullptr;  ///< backward: memory for the gradient of a frozen variable, which nobody reads

  const float* value(VariableId id) const { return variables.value(id); }
  /// False for a frozen variable: its gradient need not be computed.
  bool wants(VariableId id) const { return variables[id].trainable; }
  /// Where the gradient of a variable that is declared trainable is written. Overwrite it, do not add to it.
  float* gradient(VariableId id) const {
    return wants(id) ? gradients + (variables[id].offset - gradient_base) : discarded;
  }
  /// Where the rows of a table's gradient are written; null: the gradient is dense.
  const SparseRows* sparse_gradient(VariableId id) const {
    const int index = variables[id].sparse_index;
    return index < 0 ? nullptr : sparse_gradients + index;
  }
};

class Layer {
 public:
  explicit Layer(std::string name) : name_(std::move(name)) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::string& name() const { return name_; }
  const char* kind() const { return traits().kind; }

  /// What the layer states about itself. Cheap and without side effects; infer() and fuse() may change it.
  virtual LayerTraits traits() const = 0;
  /// Returns the shapes of the outputs per sample, from those of the inputs. Throws Error(config) that says
  /// what does not fit.
  virtual std::vector<Shape> infer(std::span<const Shape> inputs) = 0;
  /// Declares the layer's variables.
  virtual void declare(VariableStore&) {}
  /// Takes over the operation that follows. Returns false if the layer cannot; the operation then stays a
  /// layer of its own.
  virtual bool fuse(Fusible /*operation*/) { return false; }
  /// Makes primitives and buffers. Called once per mode.
  virtual LayerMemory prepare(const PrepareContext&) { return {}; }
  /// Repacks weights that have changed. Called before each step of training, and before an evaluation, by one
  /// thread per layer; different layers may run at the same time.
  virtual void refresh_weights(const KernelTable&, const Lane&, const VariableStore&, bool /*training*/) {}
  /// Computes the outputs of one microshard.
  virtual void forward(const Pass&) = 0;
  /// Computes dx and the gradients of the variables. Overwrites both.
  virtual void backward(const Pass&) = 0;

 private:
  std::string name_;
};

}  // namespace lockstep
