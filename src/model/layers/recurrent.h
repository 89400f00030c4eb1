// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What lstm and gru share: stacked layers, directions, lengths, dropout, memory. Inside, everything is
// time-major (steps x n rows), so that a step's rows lie together; inputs and outputs are transposed at the
// border. A derived class is one cell: its products, and its steps through time in one direction.
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
  RecurrentLayer(std::string name, const Params& p);

  std::vector<Shape> infer(std::span<const Shape> inputs) final;
  void declare(VariableStore& variables) final;
  void prepare(const PrepareContext& context) final;
  void refresh_weights(const KernelTable&, const Lane& lane, const VariableStore& variables,
                       bool training) final;
  void forward(const Pass& pass) final;
  void backward(const Pass& pass) final;
  std::size_t saved_bytes(std::int64_t n) const final;
  std::size_t scratch_bytes() const final { return scratch_bytes_; }
  double flops_per_sample() const final;
  bool backward_reads_input() const final { return false; }

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
    const float* x;        ///< steps x n x direction.in
    float* state;          ///< cell_floats()
    float* h;              ///< steps x n x units
    float* dropped_h;      ///< h with its mask; h itself without recurrent_dropout
    float* small;          ///< small_width() numbers per sample
    float* more_dx;        ///< backward: another steps x n x direction.in
    const float* lengths;  ///< null: all steps
    std::int64_t longest;  ///< no sample takes part in steps from here on
  };

  /// A direction's outputs, or their gradients: units() columns of rows that lie in a wider matrix, which is
  /// time-major between layers and batch-major at the border. data may be null.
  template <typename T>
  struct Output {
    T* data;
    std::int64_t row, step;  ///< elements from a sample to the next, from a step to the next
    StridedRows<T> at(std::int64_t t) const { return {data == nullptr ? nullptr : data + t * step, row}; }
  };

  /// Appends the direction's products.
  virtual void make_products(Direction& direction) = 0;
  /// Numbers of a direction kept from forward to backward, besides h, for steps x n rows.
  virtual std::int64_t cell_floats(std::int64_t rows) const = 0;
  /// Numbers per sample that a step works with.
  virtual std::int64_t small_width() const = 0;
  virtual bool has_cell_state() const { return false; }
  virtual void run_forward(const Run& run, Output<float> y) const = 0;
  /// dh, dc: gradients of the last states, overwritten; dx null: not wanted.
  virtual void run_backward(const Run& run, Output<const float> dy, float* dh, float* dc,
                            float* dx) const = 0;
  /// c of all steps, if there is one.
  virtual float* cell_states(const Run&) const { return nullptr; }

  /// Blocks of memory begin at multiples of 64 bytes.
  static std::int64_t padded(std::int64_t floats) { return (floats + 15) / 16 * 16; }
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
  /// A step's rows of a matrix with `width` columns; null for step -1.
  template <typename T>
  T* rows(const Run& run, T* matrix, std::int64_t width, std::int64_t t) const {
    return t < 0 ? nullptr : matrix + t * run.pass.n * width;
  }
  /// The rows that are a state before some step, and those of these steps.
  template <typename T>
  T* states_before(const Run& run, T* matrix, std::int64_t width) const {
    return matrix + (run.direction.reverse ? run.pass.n * width : 0);
  }
  template <typename T>
  T* steps_behind(const Run& run, T* matrix, std::int64_t width) const {
    return matrix + (run.direction.reverse ? 0 : run.pass.n * width);
  }
  /// The step's h with its mask into dropped_h; a gradient that comes back through it.
  void drop_state(const Run& run, std::int64_t t) const;
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
    std::int64_t direction_floats() const;
    std::int64_t floats() const;
    float* lengths() const { return base; }
    float* x(std::size_t stacked) const;
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
    float* gradient(int i) const { return dc() + state_floats() + i * gradient_floats(); }
  };
  std::int64_t directions() const { return bidirectional_ ? 2 : 1; }
  Memory memory_of(const Pass& pass) const;
  Work work_of(const Pass& pass) const;
  Run run_of(const Pass& pass, std::size_t stacked, std::size_t direction, std::int64_t longest) const;
  void drop_input(const Pass& pass, const Stacked& stacked, float* values) const;
  void last_states(const Run& run, std::size_t direction) const;

  std::int64_t units_, layers_, features_ = 0, steps_ = 0;
  bool bidirectional_, variational_, lengths_ = false, on_host_ = true;
  float dropout_, recurrent_dropout_;
  std::shared_ptr<const Initializer> kernel_initializer_;
  std::vector<Stacked> stack_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace lockstep
