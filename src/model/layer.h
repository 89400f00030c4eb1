// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a layer is. A layer computes for one microshard at a time, on one lane, and its arithmetic never
// depends on which lane or rank that is. Activations are channels last: n samples of the shape that infer()
// gave.
//
// Order of calls: infer, declare, (fuse_*), prepare for each mode; then in each step refresh_weights once,
// and forward and backward for each microshard. Nothing is allocated in a step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data.h"
#include "core/shape.h"
#include "kernels/kernel_table.h"
#include "model/variable_store.h"

namespace lockstep {

/// What prepare() gets: everything that can be made ahead.
struct PrepareContext {
  const KernelTable& kernels;
  Device& device;
  int lanes;
  bool training;
  std::span<const std::int64_t> sample_counts;  ///< microshard sizes that will occur, without 0
  std::span<const bool> wants_input_gradient;   ///< per input; all false in inference
  int shards = 1;                               ///< of a global batch
  DType type = DType::f32;                      ///< in which the model holds its activations
};

/// One microshard's pass through one layer. Pointers are valid for n samples; an input gradient that nobody
/// wants is null, so is dy2 when there is one gradient contribution only, and dy of an output that nothing
/// behind differentiates (never all of them).
struct Pass {
  const KernelTable& kernels;
  const Lane& lane;
  const VariableStore& variables;
  bool training;
  std::int64_t n;  ///< samples of this microshard, > 0
  int shard;       ///< its number in the global batch
  std::uint64_t seed;
  std::int64_t step;          ///< global step
  std::int64_t first_sample;  ///< its first sample's position in the global batch
  const ConstData* inputs;    ///< each of the type that the layer asked for
  const Data* outputs;
  void* saved;  ///< the layer's saved_bytes(), from forward to backward of this microshard; null in inference
  const ConstData* dy;   ///< backward: gradient of each output, in its type
  const ConstData* dy2;  ///< a second contribution, if takes_two_gradients()
  const Data* dx;        ///< backward: gradient of each input, in its type, to be overwritten
  float* gradients;      ///< backward: this microshard's gradients of the flat range from gradient_base on
  std::int64_t gradient_base;
  const SparseRows* sparse_gradients = nullptr;  ///< backward: this microshard's, by Variable::sparse_index

  const float* value(VariableId id) const { return variables.value(id); }
  /// Where the gradient of a trainable variable goes, to be overwritten.
  float* gradient(VariableId id) const { return gradients + (variables[id].offset - gradient_base); }
  /// Where the rows of a table's gradient go, to be overwritten; null: its gradient is dense.
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
  virtual const char* kind() const = 0;

  /// Shapes of the outputs per sample, from those of the inputs. Throws Error(config) that says what does not
  /// fit.
  virtual std::vector<Shape> infer(std::span<const Shape> inputs) = 0;
  /// The type in which it takes an input where the model holds activations as `type`, and its first input
  /// comes as `given`. Where an input comes in another one, the graph puts a cast before it. Not overridden:
  /// the layer computes in float32.
  virtual DType input_type(std::size_t /*input*/, DType /*type*/, DType /*given*/) const {
    return DType::f32;
  }
  /// Of its outputs. Variables, their gradients and statistics are float32 always.
  virtual DType output_type(DType /*type*/, DType /*given*/) const { return DType::f32; }
  virtual void declare(VariableStore&) {}
  /// Makes primitives. Called once per mode.
  virtual void prepare(const PrepareContext&) {}
  /// Weights have changed: repack. Called on one lane before a step of training, or before an evaluation;
  /// different layers on different lanes.
  virtual void refresh_weights(const KernelTable&, const Lane&, const VariableStore&, bool /*training*/) {}
  virtual void forward(const Pass&) = 0;
  virtual void backward(const Pass&) = 0;

  /// Bytes kept from forward to backward, for n samples.
  virtual std::size_t saved_bytes(std::int64_t /*n*/) const { return 0; }
  /// Scratch that a lane must bring.
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Multiplications and additions of a forward pass, per sample.
  virtual double flops_per_sample() const { return 0; }
  /// What backward reads: decides how long activations live.
  virtual bool backward_reads_input() const { return true; }
  virtual bool backward_reads_output() const { return false; }
  /// backward adds dy2 to dy itself.
  virtual bool takes_two_gradients() const { return false; }
  /// The output is the input with another shape (or, in inference, unchanged): no memory, no call.
  virtual bool is_view(bool /*training*/) const { return false; }
  /// Takes a following relu into its own pass; false: cannot. What has no true answer here stays a layer of
  /// its own.
  virtual bool fuse_relu() { return false; }
  /// Takes a following addition of another tensor (which becomes its last input) into its own pass.
  virtual bool fuse_residual() { return false; }
  /// False for a layer without inputs, such as a constant; else no `inputs` means the layer before.
  virtual bool takes_inputs() const { return true; }
  /// Nothing behind it moves what lies before it: no gradient passes, backward is never called.
  virtual bool stops_gradient() const { return false; }
  /// What the graph looks for when it fuses.
  virtual bool is_relu() const { return false; }
  virtual bool is_addition() const { return false; }
  /// After prepare(): why products of its 16-bit numbers are float32's on this device
  /// (LinearPrimitive::widened(), the first of its products that says something); empty: they are not.
  virtual std::string_view widened_products() const { return {}; }

 private:
  std::string name_;
};

/// A layer at which microshards meet, on all ranks: local pass, sums along the tree, second pass.
class CollectiveLayer : public Layer {
 public:
  using Layer::Layer;
  /// How two leaves are merged, in a fixed order. sums: number by number. moments: count, means and sums of
  /// squared deviations (NormKernels::merge_moments).
  enum class Merge { sums, moments };
  /// The totals of all groups, in order, on the device; once per step on every rank, on one lane.
  struct Met {
    const KernelTable& kernels;
    const Lane& lane;
    VariableStore& variables;
    std::span<const double* const> totals;
  };

  /// Shards per group: 0 means all shards together.
  virtual int group_size() const = 0;
  virtual int forward_width() const = 0;
  virtual int backward_width() const = 0;
  virtual Merge forward_merge() const = 0;
  virtual Merge backward_merge() const = 0;
  /// First pass: fills `leaf` (forward_width() numbers, on the device) for a microshard; n == 0 is given too
  /// (counts of zero).
  virtual void forward_local(const Pass&, double* leaf) = 0;
  /// May change non-trainable variables.
  virtual void forward_met(const Met&) = 0;
  virtual void backward_local(const Pass&, double* leaf) = 0;
  virtual void backward_met(const Met&) = 0;
};

}  // namespace lockstep
