// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of lstm and gru: stacked layers, directions, lengths, dropout, memory. Internally all
// matrices are time-major (steps x n rows), so that the rows of a step are contiguous; inputs and outputs are
// transposed on the way in and out. A derived class is one cell: its products, and its steps through time in
// one direction.
//
// With 16-bit activations, x, y, their gradients and the factors of products have the model's type. Gates, c,
// and the results of products that are added to gates or to h are float32. So is h in a cell without c.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "config/option.h"
#include "model/layer.h"
#include "model/layers/step_product.h"
#include "model/scheduled_layer.h"

namespace lockstep {

/// The options that lstm and gru share. Their own options follow these.
/// The options that recurrent layers share.
struct RecurrentOptions {
  std::int64_t units = 0, layers = 1;
  bool bidirectional = false, variational = false;
  LayerNumber dropout, recurrent_dropout;
  Node kernel_initializer;
};
/// Their table, then the options `own`. `kPath` leads to the RecurrentOptions from the options of a layer.
template <auto... kPath, typename... Own>
constexpr std::array<ParamSpec, 7 + sizeof...(Own)> recurrent_table(const Own&... own) {
  using R = RecurrentOptions;
  return {
      option<kPath..., &R::units>("units", kRequired, between(1, 16777216),
                                  "size of the state, and of a direction's output"),
      option<kPath..., &R::layers>("layers", "1", between(1, 1000),
                                   "number of stacked layers; each reads the outputs of the one before"),
      option<kPath..., &R::bidirectional>(
          "bidirectional", "false", {},
          "adds a second direction, from the end to the start; outputs are side by side, forward first"),
      option<kPath..., &R::dropout>("dropout", "0", kScheduledShare,
                                    "fraction of the elements between stacked layers set to zero in "
                                    "training, with a new mask at each step"),
      option<kPath..., &R::variational>(
          "variational", "false", {},
          "dropout uses one mask per sample for all steps, also on the first layer's input"),
      option<kPath..., &R::recurrent_dropout>("recurrent_dropout", "0", kScheduledShare,
                                              "fraction of the state h set to zero before the next step's "
                                              "gates, with one mask per sample"),
      option<kPath..., &R::kernel_initializer>("kernel_initializer", "glorot_uniform", {},
                                               "initial kernels ((in + units) x gates)"),
      own...};
}

class RecurrentLayer : public Layer, public ScheduledLayer {
 public:
  /// `p` is for messages.
  RecurrentLayer(std::string name, const char* kind, const RecurrentOptions& o, const Params& p);

  LayerTraits traits() const final;
  std::vector<LayerNumber*> numbers() final { return {&dropout_, &recurrent_dropout_}; }
  std::vector<Shape> infer(std::span<const Shape> inputs) final;
  void declare(VariableStore& variables) final;
  LayerMemory prepare(const PrepareContext& context) final;
  void refresh_weights(const KernelTable&, const Lane& lane, const VariableStore& variables,
                       bool training) final;
  void forward(const Pass& pass) final;
  void backward(const Pass& pass) final;

 protected:
  /// One direction of one layer.
  struct Direction {
    std::int64_t in = 0;
    bool reverse = false;
    std::string suffix;  ///< of its variables: "_0", "_0_reverse"
    std::uint32_t dropout_purpose = 0;
    std::vector<StepProduct> products;
  };
  /// One direction of one layer in one pass. Matrices are steps x n rows.
  struct Run {
    const Pass& pass;
    Lane lane;  ///< with the scratch memory of the products
    const Direction& direction;
    ConstData x;           ///< steps x n x direction.in
    float* state;          ///< cell_floats()
    Data h;                ///< steps x n x units, of state_type()
    Data factor;           ///< h as products take it: in type(), with its mask; h itself if that is the same
    float* small;          ///< small_width() numbers per sample
    float* gradients;      ///< backward: gradient_floats(); null in float32
    Data more_dx;          ///< backward: a second array of steps x n x direction.in
    const float* lengths;  ///< null: all steps
    std::int64_t longest;  ///< the longest sequence: later steps have no sample
  };

  /// A direction's outputs, or their gradients: units() columns of a wider matrix. That is time-major between
  /// stacked layers, and batch-major for the layer's own outputs. data may be null.
  template <typename Numbers>
  struct Output {
    Numbers data;
    std::int64_t row, step;  ///< elements from a sample to the next, from a step to the next
    StridedRows<Numbers> at(std::int64_t t) const {
      return {data == nullptr ? data : data.offset(t * step), row};
    }
  };

  /// Appends the products of the direction.
  virtual void make_products(Direction& direction) = 0;
  /// Floats that a direction keeps from forward to backward in addition to h, for steps x n rows.
  virtual std::int64_t cell_floats(std::int64_t rows) const = 0;
  /// Floats for the gradients of the gates of steps x n rows. With float32 they overwrite the gates; with
  /// 16-bit activations they need memory of their own.
  virtual std::int64_t gradient_floats(std::int64_t rows) const = 0;
  /// Columns of all recurrent matrices of a direction, in units.
  virtual std::int64_t recurrent_gates() const = 0;
  /// Floats of work memory per sample in a step.
  virtual std::int64_t small_width() const = 0;
  virtual bool has_cell_state() const { return false; }
  virtual void run_forward(const Run& run, Output<Data> y) const = 0;
  /// dh, dc: gradients of the last states, overwritten. dx is null if it is not wanted.
  virtual void run_backward(const Run& run, Output<ConstData> dy, float* dh, float* dc, Data dx) const = 0;
  /// c of all steps; null in a cell without c.
  virtual float* cell_states(const Run&) const { return nullptr; }

  /// Rounds up, so that blocks of memory begin at multiples of 64 bytes.
  static std::int64_t padded(std::int64_t floats) { return (floats + 15) / 16 * 16; }
  /// Floats that hold `numbers` numbers of a type of activations.
  static std::int64_t room(std::int64_t numbers, DType type) {
    return padded(type == DType::f32 ? numbers : (numbers + 1) / 2);
  }
  DType type() const { return type_; }  ///< of activations
  DType state_type() const { return has_cell_state() ? type_ : DType::f32; }
  std::int64_t units() const { return units_; }
  std::int64_t steps() const { return steps_; }
  const std::shared_ptr<const Initializer>& kernel_initializer() const { return kernel_initializer_; }
  /// The i-th step in the direction's order.
  std::int64_t step_at(const Run& run, std::int64_t i) const {
    return run.direction.reverse ? steps_ - 1 - i : i;
  }
  /// The step before step t in the direction's order; -1 for the first.
  std::int64_t step_before(const Run& run, std::int64_t t) const {
    return run.direction.reverse ? (t + 1 < steps_ ? t + 1 : -1) : t - 1;
  }
  /// Whether the state before step t is the result of a step. Otherwise it is zero, and so is a product with
  /// it.
  bool is_linked(const Run& run, std::int64_t t) const {
    const std::int64_t before = step_before(run, t);
    return before >= 0 && t < run.longest && before < run.longest;
  }
  /// Whether a step's products and its cell are one kernel (RecurrentKernels::fuses). A dropped h keeps the
  /// gradient's product apart, since the mask applies to the product alone.
  bool fuses(const Run& run, bool backward) const {
    for (const StepProduct& product : run.direction.products)
      if (!product.can_fuse()) return false;
    return !(backward && drops_state()) &&
           run.pass.kernels.recurrent.fuses(type_, run.pass.n, units_, recurrent_gates());
  }
  bool drops_state() const { return !recurrent_dropout_.is_zero(); }
  /// A step's rows of a matrix with `width` columns; null for step -1. Matrices are pointers or Data.
  template <typename Matrix>
  Matrix rows(const Run& run, Matrix matrix, std::int64_t width, std::int64_t t) const {
    return t < 0 ? nullptr : at_offset(matrix, t * run.pass.n * width);
  }
  /// The rows that are the state before some step.
  template <typename Matrix>
  Matrix states_before(const Run& run, Matrix matrix, std::int64_t width) const {
    return at_offset(matrix, run.direction.reverse ? run.pass.n * width : 0);
  }
  /// The rows of the steps that have a state before them.
  template <typename Matrix>
  Matrix steps_after(const Run& run, Matrix matrix, std::int64_t width) const {
    return at_offset(matrix, run.direction.reverse ? 0 : run.pass.n * width);
  }
  /// Where a cell writes step t's h in type(), if its own h has another type; else null.
  Data rounded_state(const Run& run, std::int64_t t) const {
    return state_type() == type_ ? Data() : rows(run, run.factor, units_, t);
  }
  /// Writes step t's h with its mask to run.factor, from h or, if there is one, from the rounded h.
  void drop_state(const Run& run, std::int64_t t) const;
  /// Applies the mask of h to its gradient.
  void drop_gradient(const Run& run, float* dh) const;

 private:
  struct Stacked {
    std::int64_t in = 0;
    bool dropout = false;
    std::vector<std::uint32_t> purposes;  ///< random streams of the masks on its input, by step
    std::vector<Direction> directions;
  };
  /// The memory that a pass keeps from forward to backward. In inference it is scratch memory, and all
  /// directions of all layers share one part of it. Sizes are in floats.
  struct Memory {
    const RecurrentLayer& layer;
    std::int64_t n;
    bool training;
    float* base;
    std::int64_t x_floats(std::size_t stacked) const;
    std::int64_t state_floats() const;
    std::int64_t h_floats() const;
    std::int64_t direction_floats() const;
    std::int64_t floats() const;
    float* x_at(std::size_t stacked) const;
    float* lengths() const { return base; }
    Data x(std::size_t stacked) const { return {x_at(stacked), layer.type_}; }
    float* direction(std::size_t stacked, std::size_t direction) const;
  };
  /// The work memory of a pass, in scratch memory.
  struct Work {
    const RecurrentLayer& layer;
    std::int64_t n;
    float* base;
    std::int64_t state_floats() const { return padded(n * layer.units_); }
    std::int64_t gradient_floats() const;
    std::int64_t floats(bool training) const;
    float* small() const { return base; }
    float* dh() const { return base + padded(n * layer.small_width()); }
    float* dc() const { return dh() + state_floats(); }
    Data gradient(int i) const { return {dc() + state_floats() + i * gradient_floats(), layer.type_}; }
    float* gates() const { return dc() + state_floats() + 4 * gradient_floats(); }
    std::int64_t gates_floats() const {
      return layer.type_ == DType::f32 ? 0 : layer.gradient_floats(layer.steps_ * n);
    }
  };
  static Data at_offset(Data matrix, std::int64_t elements) { return matrix.offset(elements); }
  static ConstData at_offset(ConstData matrix, std::int64_t elements) { return matrix.offset(elements); }
  template <typename T>
  static T* at_offset(T* matrix, std::int64_t elements) {
    return matrix + elements;
  }
  /// Whether products take numbers other than h.
  bool has_factors(bool training) const {
    return state_type() != type_ || (training && !recurrent_dropout_.is_zero());
  }
  std::int64_t directions() const { return bidirectional_ ? 2 : 1; }
  Memory memory_of(const Pass& pass) const;
  Work work_of(const Pass& pass) const;
  Run run_of(const Pass& pass, std::size_t stacked, std::size_t direction, std::int64_t longest) const;
  void drop_input(const Pass& pass, const Stacked& stacked, Data values) const;
  void last_states(const Run& run, std::size_t direction) const;

  const char* kind_;
  std::int64_t units_, layers_, features_ = 0, steps_ = 0;
  DType type_ = DType::f32;
  bool bidirectional_, variational_, lengths_ = false, on_host_ = true;
  LayerNumber dropout_, recurrent_dropout_;
  std::shared_ptr<const Initializer> kernel_initializer_;
  std::vector<Stacked> stack_;
  std::size_t scratch_bytes_[2] = {};  ///< in inference, in training
};

}  // namespace lockstep
