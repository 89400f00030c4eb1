// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gated recurrent unit (Cho et al. 2014):
//   [r, u] = sigmoid([x, h] gates_kernel + gates_bias)
//   c = tanh([x, r h] candidate_kernel + candidate_bias)
//   h' = u h + (1 - u) c
// With reset_after, as in cuDNN and PyTorch, r multiplies the product with h instead of h:
//   c = tanh(x's part + r (h's part + its own bias))
#include "model/layer_table.h"
#include "model/layers/recurrent.h"

namespace lockstep {

namespace {

struct GruOptions {
  RecurrentOptions recurrent;
  Node gates_bias_initializer, candidate_bias_initializer;
  bool reset_after = false;
};
using Options = GruOptions;
constexpr auto kTable = recurrent_table<&Options::recurrent>(
    option<&Options::gates_bias_initializer>("gates_bias_initializer", "ones", {},
                                             "initial biases of r and u (2 units)"),
    option<&Options::candidate_bias_initializer>("candidate_bias_initializer", "zeros", {},
                                                 "initial biases of the candidate (units)"),
    option<&Options::reset_after>("reset_after", "false", {},
                                  "r multiplies the product with h (as in PyTorch) instead of h itself"));

class Gru final : public RecurrentLayer {
 public:
  using Options = GruOptions;
  Gru(std::string name, const Options& o, const Params& p)
      : RecurrentLayer(std::move(name), "gru", o.recurrent, p),
        gates_bias_initializer_(make_initializer(o.gates_bias_initializer)),
        candidate_bias_initializer_(make_initializer(o.candidate_bias_initializer)),
        reset_after_(o.reset_after) {}

 protected:
  void make_products(Direction& direction) override {
    StepProduct::Options options{.in = direction.in,
                                 .units = units(),
                                 .width = 2 * units(),
                                 .steps = steps(),
                                 .kernel = name() + "/gates_kernel" + direction.suffix,
                                 .bias = name() + "/gates_bias" + direction.suffix,
                                 .kernel_initializer = kernel_initializer(),
                                 .bias_initializer = gates_bias_initializer_};
    direction.products.emplace_back(options);
    options.width = units();
    options.kernel = name() + "/candidate_kernel" + direction.suffix;
    options.bias = name() + "/candidate_bias" + direction.suffix;
    options.bias_initializer = candidate_bias_initializer_;
    if (reset_after_) options.recurrent_bias = name() + "/candidate_recurrent_bias" + direction.suffix;
    direction.products.emplace_back(options);
  }
  std::int64_t cell_floats(std::int64_t rows) const override {
    return padded(rows * 2 * units()) + padded(rows * units()) + room(rows * units(), reset_type());
  }
  std::int64_t gradient_floats(std::int64_t rows) const override {
    return room(rows * 2 * units(), type()) + 2 * room(rows * units(), type());
  }
  std::int64_t recurrent_gates() const override { return 3; }
  std::int64_t small_width() const override { return 4 * units(); }

  void run_forward(const Run& run, Output<Data> y) const override {
    const StepProduct &gates_product = run.direction.products[0], &product = run.direction.products[1];
    const RecurrentKernels& kernels = run.pass.kernels.recurrent;
    const std::int64_t u = units();
    const Parts parts = parts_of(run);
    float *gates_sum = run.small, *candidate_sum = run.small + run.pass.n * 2 * u;
    gates_product.all_steps(run.pass, run.lane, run.x, parts.gates);
    product.all_steps(run.pass, run.lane, run.x, parts.candidate);
    const bool fused = fuses(run, false);
    const Data no_state(run.small + run.pass.n * 3 * u, type());
    if (reset_after_ && !fused) run.pass.kernels.elementwise.zero(run.lane, run.pass.n * u, no_state);
    for (std::int64_t i = 0; i < steps(); ++i) {
      const std::int64_t t = step_at(run, i), before = step_before(run, t);
      const bool linked = is_linked(run, t);
      const Data state = rows(run, run.factor, u, before), reset = rows(run, parts.reset, u, t);
      float *gates = rows(run, parts.gates, 2 * u, t), *candidate = rows(run, parts.candidate, u, t);
      const float* h_before = rows(run, run.h, u, before);
      float* h = rows(run, run.h, u, t);
      const Data rounded = rounded_state(run, t);
      const RecurrentStep step{run.pass.n, u, t, run.lengths};
      RecurrentTerm gates_term, candidate_term;
      if (linked) gates_term = gates_product.term(run.pass, run.lane, fused, state, gates_sum);
      if (reset_after_) {
        if (fused && linked) {
          candidate_term = product.factors(run.pass, state);
        } else if (!fused && t < run.longest) {
          product.one_step(run.pass, run.lane, linked ? state : no_state, reset);
          candidate_term = reset.f32();
        }
        kernels.gru_reset_after(run.lane, step, gates, gates_term, candidate, candidate_term,
                                product.recurrent_bias(run.pass), reset.f32(), h_before, h, rounded, y.at(t));
      } else {
        kernels.gru_gates(run.lane, step, gates, gates_term, state, reset);
        if (linked) candidate_term = product.term(run.pass, run.lane, fused, reset, candidate_sum);
        kernels.gru_output(run.lane, step, gates, candidate, candidate_term, false, h_before, h, rounded,
                           y.at(t));
      }
      drop_state(run, t);
    }
  }

  void run_backward(const Run& run, Output<ConstData> dy, float* dh, float* /*dc*/, Data dx) const override {
    const StepProduct &gates_product = run.direction.products[0], &product = run.direction.products[1];
    const RecurrentKernels& kernels = run.pass.kernels.recurrent;
    const ElementwiseKernels& elementwise = run.pass.kernels.elementwise;
    const std::int64_t u = units(), count = run.pass.n * u;
    const Parts parts = parts_of(run);
    const Gradients gradients = gradients_of(run, parts);
    float *through_gates = run.small, *through_candidate = run.small + count, *dreset = run.small + 2 * count;
    const bool fused = fuses(run, true);
    RecurrentTerm recurrent;
    const float* through_reset = nullptr;
    for (std::int64_t i = steps() - 1; i >= 0; --i) {
      const std::int64_t t = step_at(run, i), before = step_before(run, t);
      const bool linked = is_linked(run, t);
      const RecurrentStep step{run.pass.n, u, t, run.lengths};
      const float* gates = rows(run, parts.gates, 2 * u, t);
      const Data dgates = rows(run, gradients.gates, 2 * u, t),
                 dcandidate = rows(run, gradients.candidate, u, t),
                 dproduct = rows(run, gradients.reset, u, t);
      kernels.gru_output_backward(
          run.lane, step,
          {.gates = gates,
           .candidate = rows(run, parts.candidate, u, t),
           .reset_product = reset_after_ ? rows(run, parts.reset, u, t).f32() : nullptr,
           .h_before = rows(run, run.h, u, before),
           .dgates = dgates,
           .dcandidate = dcandidate,
           .dreset_product = dproduct},
          recurrent, through_reset, dh, dy.at(t));
      if (!reset_after_) {
        RecurrentTerm dreset_h;
        if (linked) dreset_h = product.term_backward(run.pass, run.lane, fused, dcandidate, dreset);
        kernels.gru_gates_backward(run.lane, step, gates, rows(run, run.factor, u, before), dreset_h, dgates,
                                   through_candidate);
      } else if (linked && !fused) {
        product.one_step_backward(run.pass, run.lane, dproduct, through_candidate);
      }
      recurrent = RecurrentTerm();
      through_reset = nullptr;
      if (!linked) continue;
      if (reset_after_ && fused) {
        recurrent = {gates_product.factors(run.pass, dgates), product.factors(run.pass, dproduct)};
        continue;
      }
      recurrent = gates_product.term_backward(run.pass, run.lane, fused, dgates, through_gates);
      if (drops_state()) {
        elementwise.accumulate(run.lane, count, through_gates, through_candidate);
        drop_gradient(run, through_gates);
      } else {
        through_reset = through_candidate;
      }
    }
    gates_product.all_steps_backward(run.pass, run.lane, run.x, gradients.gates, dx);
    product.all_steps_backward(run.pass, run.lane, run.x, gradients.candidate,
                               dx == nullptr ? Data() : run.more_dx);
    if (dx != nullptr)
      elementwise.accumulate(run.lane, steps() * run.pass.n * run.direction.in, dx, run.more_dx);
    const Data states = states_before(run, run.factor, u);
    gates_product.recurrent_gradient(run.pass, run.lane, states, steps_after(run, gradients.gates, 2 * u));
    if (reset_after_) {
      product.recurrent_gradient(run.pass, run.lane, states, steps_after(run, gradients.reset, u));
      product.recurrent_bias_gradient(run.pass, run.lane, gradients.reset);
    } else {
      product.recurrent_gradient(run.pass, run.lane, steps_after(run, parts.reset, u),
                                 steps_after(run, gradients.candidate, u));
    }
  }

 private:
  /// reset: r h, the factor of a product; with reset_after the result of a product, h's part of the
  /// candidate.
  struct Parts {
    float *gates, *candidate;
    Data reset;
  };
  /// The gradients that are factors of products. With float32 they overwrite the parts.
  struct Gradients {
    Data gates, candidate, reset;
  };
  DType reset_type() const { return reset_after_ ? DType::f32 : type(); }
  Parts parts_of(const Run& run) const {
    const std::int64_t count = steps() * run.pass.n * units();
    float* candidate = run.state + padded(2 * count);
    return {run.state, candidate, {candidate + padded(count), reset_type()}};
  }
  Gradients gradients_of(const Run& run, const Parts& parts) const {
    if (run.gradients == nullptr) return {parts.gates, parts.candidate, parts.reset};
    const std::int64_t count = steps() * run.pass.n * units();
    float* candidate = run.gradients + room(2 * count, type());
    return {{run.gradients, type()}, {candidate, type()}, {candidate + room(count, type()), type()}};
  }

  std::shared_ptr<const Initializer> gates_bias_initializer_, candidate_bias_initializer_;
  bool reset_after_;
};

}  // namespace

extern const LayerEntry kGruLayer = {"gru", "gated recurrent unit over steps x features", kTable,
                                     make_layer<Gru>};

}  // namespace lockstep
