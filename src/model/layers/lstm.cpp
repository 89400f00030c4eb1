// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// LSTM (Hochreiter and Schmidhuber 1997; Gers, Schmidhuber and Cummins 2000):
//   [i, j, f, o] = [x, h] kernel + bias
//   c' = c sigmoid(f + forget_bias) + sigmoid(i) tanh(j)
//   h' = tanh(c') sigmoid(o)
#include "model/layer_table.h"
#include "model/layers/recurrent.h"

namespace lockstep {

namespace {

struct LstmOptions {
  RecurrentOptions recurrent;
  Node bias_initializer;
  float forget_bias = 0;
};
using Options = LstmOptions;
constexpr auto kTable = recurrent_table<&Options::recurrent>(
    option<&Options::bias_initializer>("bias_initializer", "zeros", {}, "initial biases (4 units)"),
    option<&Options::forget_bias>("forget_bias", "1", between(-1e6, 1e6),
                                  "added to the forget gate at each step; not part of the bias"));

class Lstm final : public RecurrentLayer {
 public:
  using Options = LstmOptions;
  Lstm(std::string name, const Options& o, const Params& p)
      : RecurrentLayer(std::move(name), "lstm", o.recurrent, p),
        bias_initializer_(make_initializer(o.bias_initializer)),
        forget_bias_(o.forget_bias) {}

 protected:
  void make_products(Direction& direction) override {
    direction.products.emplace_back(StepProduct::Options{.in = direction.in,
                                                         .units = units(),
                                                         .width = 4 * units(),
                                                         .steps = steps(),
                                                         .kernel = name() + "/kernel" + direction.suffix,
                                                         .bias = name() + "/bias" + direction.suffix,
                                                         .kernel_initializer = kernel_initializer(),
                                                         .bias_initializer = bias_initializer_});
  }
  std::int64_t cell_floats(std::int64_t rows) const override { return rows * 5 * units(); }
  std::int64_t gradient_floats(std::int64_t rows) const override { return room(rows * 4 * units(), type()); }
  std::int64_t small_width() const override { return 4 * units(); }
  std::int64_t recurrent_gates() const override { return 4; }
  bool has_cell_state() const override { return true; }
  float* cell_states(const Run& run) const override { return run.state + steps() * run.pass.n * 4 * units(); }

  void run_forward(const Run& run, Output<Data> y) const override {
    const StepProduct& product = run.direction.products[0];
    const std::int64_t u = units();
    const bool fused = fuses(run, false);
    float *gates = run.state, *c = cell_states(run);
    product.all_steps(run.pass, run.lane, run.x, gates);
    for (std::int64_t i = 0; i < steps(); ++i) {
      const std::int64_t t = step_at(run, i), before = step_before(run, t);
      RecurrentTerm recurrent;
      if (is_linked(run, t))
        recurrent = product.term(run.pass, run.lane, fused, rows(run, run.factor, u, before), run.small);
      run.pass.kernels.recurrent.lstm_forward(run.lane, {run.pass.n, u, t, run.lengths},
                                              rows(run, gates, 4 * u, t), recurrent, forget_bias_,
                                              rows(run, c, u, before), rows(run, run.h, u, before),
                                              rows(run, c, u, t), rows(run, run.h, u, t), y.at(t));
      drop_state(run, t);
    }
  }

  void run_backward(const Run& run, Output<ConstData> dy, float* dh, float* dc, Data dx) const override {
    const StepProduct& product = run.direction.products[0];
    const std::int64_t u = units();
    const bool fused = fuses(run, true);
    float *gates = run.state, *c = cell_states(run);
    const Data dgates(run.gradients == nullptr ? gates : run.gradients, type());
    RecurrentTerm recurrent;
    for (std::int64_t i = steps() - 1; i >= 0; --i) {
      const std::int64_t t = step_at(run, i);
      run.pass.kernels.recurrent.lstm_backward(
          run.lane, {run.pass.n, u, t, run.lengths}, rows(run, gates, 4 * u, t), rows(run, dgates, 4 * u, t),
          rows(run, c, u, step_before(run, t)), rows(run, c, u, t), recurrent, dh, dc, dy.at(t));
      recurrent = RecurrentTerm();
      if (!is_linked(run, t)) continue;
      recurrent = product.term_backward(run.pass, run.lane, fused, rows(run, dgates, 4 * u, t), run.small);
      drop_gradient(run, run.small);
    }
    product.all_steps_backward(run.pass, run.lane, run.x, dgates, dx);
    product.recurrent_gradient(run.pass, run.lane, states_before(run, run.factor, u),
                               steps_after(run, dgates, 4 * u));
  }

 private:
  std::shared_ptr<const Initializer> bias_initializer_;
  float forget_bias_;
};

}  // namespace

extern const LayerEntry kLstmLayer = {"lstm", "long short-term memory over steps x features", kTable,
                                      make_layer<Lstm>};

}  // namespace lockstep
