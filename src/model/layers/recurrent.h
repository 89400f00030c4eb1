// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What lstm and gru share: stacked layers, directions, lengths, dropout, memory. Inside, everything is
// time-major (steps x n rows), so that a step's rows lie together; inputs and outputs are transposed at the
// border. A derived class is one cell: its products, and its steps through time in one direction.
//
// In 16 bits x, y, their gradients and what products multiply are of the model's type; gates, c, and h where
// there is no c to carry the state, are float32, and so are what products give to gates and to h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/layer.h"
#include "model/layers/step_product.h"

namespace lockstep {

/// Options that both have; each puts its own behind them.
inline constexpr ParamSpec kRecurrentOptions[] = {
    {"units", ParamType::integer, kRequired, ">= 1", "size of the state, and of a direction's output"},
    {"layers", ParamType::integer, "1", ">= 1", "stacked: each takes the outputs of the one before"},
    {"bidirectional", ParamType::boolean, "false", "",
     "a second state from the end to the start; outputs of both side by side, forward first"},
    {"dropout", ParamType::real, "0", "[0, 1)",
     "share of the elements between stacked layers set to zero in training, new at each step"},
    {"variational", ParamType::boolean, "false", "",
     "dropout with one mask per sample for all steps, and on the first layer's input, too"},
    {"recurrent_dropout", ParamType::real, "0", "[0, 1)",
     "share of the state h set to zero on its way to the next step's gates, one mask per sample"},
    {"kernel_initializer", ParamType::node, "glorot_uniform", "", "initial kernels ((in + units) x gates)"},
};

class RecurrentLayer : public Layer {
 public:
  RecurrentLayer(std::string name, const char* kind, const Params& p);

  LayerTraits traits() const final;
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
  /// One direction in one pass. Matrices are steps x n rows.
  struct Run {
    const Pass& pass;
    Lane lane;  ///< its scratch is that of the products
    const Direction& direction;
    ConstData x;       ///< steps x n x direction.in
    float* state;      ///< cell_floats()
    Data h;            ///< steps x n x units, of state_type()
    Data factor;       ///< h as products take it: in type(), with its mask; h itself where that is the same
    float* small;      ///< small_width() numbers per sample
    float* gradients;  ///< backward: gradient_floats(); null in float32
    Data more_dx;      ///< backward: another steps x n x direction.in
    const float* lengths;  ///< null: all steps
    std::int64_t longest;  ///< no sample takes part in steps from here on
  };

  /// A direction's outputs, or their gradients: units() columns of rows that lie in a wider matrix, which is
  /// time-major between layers and batch-major at the border. data may be null.
  template <typename Numbers>
  struct Output {
    Numbers data;
    std::int64_t row, step;  ///< elements from a sample to the next, from a step to the next
    StridedRows<Numbers> at(std::int64_t t) const {
      return {data == nullptr ? data : data.offset(t * step), row};
    }
  };

  /// Appends the direction's products.
  virtual void make_products(Direction& direction) = 0;
  /// Numbers of a direction kept from forward to backward, besides h, for steps x n rows.
  virtual std::int64_t cell_floats(std::int64_t rows) const = 0;
  /// Memory for the gradients of the gates of steps x n rows, where they do not lie where the gates did: in
  /// 16 bits, for products to take.
  virtual std::int64_t gradient_floats(std::int64_t rows) const = 0;
  /// Numbers per sample that a step works with.
  virtual std::int64_t small_width() const = 0;
  virtual bool has_cell_state() const { return false; }
  virtual void run_forward(const Run& run, Output<Data> y) const = 0;
  /// dh, dc: gradients of the last states, overwritten; dx null: not wanted.
  virtual void run_backward(const Run& run, Output<ConstData> dy, float* dh, float* dc, Data dx) const = 0;
  /// c of all steps, if there is one.
  virtual float* cell_states(const Run&) const { return nullptr; }

  /// Blocks of memory begin at multiples of 64 bytes.
  static std::int64_t padded(std::int64_t floats) { return (floats + 15) / 16 * 16; }
  /// Floats that have room for so many numbers of a type of activations.
  static std::int64_t room(std::int64_t numbers, DType type) {
    return padded(type == DType::f32 ? numbers : (numbers + 1) / 2);
  }
  DType type() const { return type_; }  ///< of activations
  DType state_type() const { return has_cell_state() ? type_ : DType::f32; }
  std::int64_t units() const { return units_; }
  std::int64_t steps() const { return steps_; }
  const std::shared_ptr<const Initializer>& kernel_initializer() const { return kernel_initializer_; }
  /// The i-th step in the direction's order, and the one before it or -1.
  std::int64_t step_at(const Run& run, std::int64_t i) const {
    return run.direction.reverse ? steps_ - 1 - i : i;
  }
  std::int64_t step_before(const Run& run, std::int64_t t) const {
    return run.direction.reverse ? (t + 1 < steps_ ? t + 1 : -1) : t - 1;
  }
  /// The state before step t comes from a step, and matters: else a product with it would be zero.
  bool is_linked(const Run& run, std::int64_t t) const {
    const std::int64_t before = step_before(run, t);
    return before >= 0 && t < run.longest && before < run.longest;
  }
  /// A step's rows of a matrix with `width` columns; null for step -1. Matrices are pointers or Data.
  template <typename Matrix>
  Matrix rows(const Run& run, Matrix matrix, std::int64_t width, std::int64_t t) const {
    return t < 0 ? nullptr : behind(matrix, t * run.pass.n * width);
  }
  /// The rows that are a state before some step, and those of these steps.
  template <typename Matrix>
  Matrix states_before(const Run& run, Matrix matrix, std::int64_t width) const {
    return behind(matrix, run.direction.reverse ? run.pass.n * width : 0);
  }
  template <typename Matrix>
  Matrix steps_behind(const Run& run, Matrix matrix, std::int64_t width) const {
    return behind(matrix, run.direction.reverse ? 0 : run.pass.n * width);
  }
  /// The step's h as products take it, into run.factor; a gradient that comes back through its mask.
  void make_factor(const Run& run, std::int64_t t) const;
  void drop_gradient(const Run& run, float* dh) const;

 private:
  struct Stacked {
    std::int64_t in = 0;
    bool dropout = false;
    std::vector<std::uint32_t> purposes;  ///< of the masks on its input, by step
    std::vector<Direction> directions;
  };
  /// What a pass keeps from forward to backward; in inference it lies in scratch, and all directions of all
  /// layers share one place for theirs. Sizes in floats.
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
  /// What a pass works with, in scratch.
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
  static Data behind(Data matrix, std::int64_t elements) { return matrix.offset(elements); }
  static ConstData behind(ConstData matrix, std::int64_t elements) { return matrix.offset(elements); }
  template <typename T>
  static T* behind(T* matrix, std::int64_t elements) {
    return matrix + elements;
  }
  /// Products take numbers other than h.
  bool has_factors(bool training) const {
    return state_type() != type_ || (training && recurrent_dropout_ > 0);
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
  float dropout_, recurrent_dropout_;
  std::shared_ptr<const Initializer> kernel_initializer_;
  std::vector<Stacked> stack_;
  std::size_t scratch_bytes_[2] = {};  ///< in inference, in training
};

}  // namespace lockstep
