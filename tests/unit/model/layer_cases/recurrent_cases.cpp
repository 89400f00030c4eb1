// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "layer_cases.h"

namespace lockstep {

namespace {

struct Net {
  bool gru = false, reset_after = false, bidirectional = false;
  std::int64_t steps = 1, features = 1, units = 1, layers = 1;
  double forget_bias = 1;
  bool dropout = false, variational = false, recurrent_dropout = false;  ///< at rate 0.5, in layer "rnn"
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// 0 or 2: dropout's factor of an element of a sample, as LayerRunner's seed and step give it.
double factor(const std::string& purpose, std::size_t sample, std::int64_t element) {
  const PhiloxBlock words = philox_words(1, philox_purpose(purpose), 0, static_cast<std::uint32_t>(sample),
                                         static_cast<std::uint32_t>(element / 4));
  return philox_uniform(words[static_cast<std::size_t>(element % 4)]) >= 0.5F ? 2 : 0;
}

/// One step of one cell; x is followed by h.
class Cell {
 public:
  Cell(const Net& net, std::int64_t in, const std::string& suffix, const Variables& variables)
      : net_(net), in_(in), suffix_(suffix), variables_(variables) {}

  /// `mask`: the factors of h before the gates.
  void step(const double* x, const Values& mask, Values& h, Values& c) const {
    const auto u = static_cast<std::size_t>(net_.units);
    Values state = h;
    for (std::size_t k = 0; k < u; ++k) state[k] *= mask[k];
    if (!net_.gru) {
      const Values gates = product("kernel", "bias", x, state, 4);
      for (std::size_t k = 0; k < u; ++k) {
        c[k] =
            c[k] * sigmoid(gates[2 * u + k] + net_.forget_bias) + sigmoid(gates[k]) * std::tanh(gates[u + k]);
        h[k] = std::tanh(c[k]) * sigmoid(gates[3 * u + k]);
      }
      return;
    }
    const Values gates = product("gates_kernel", "gates_bias", x, state, 2);
    Values reset(u);
    for (std::size_t k = 0; k < u; ++k) reset[k] = sigmoid(gates[k]);
    Values reset_state = state;
    for (std::size_t k = 0; k < u; ++k) reset_state[k] *= reset[k];
    const Values nothing(u, 0.0), no_x(static_cast<std::size_t>(in_), 0.0);
    Values candidate =
        product("candidate_kernel", "candidate_bias", x, net_.reset_after ? nothing : reset_state, 1);
    if (net_.reset_after) {
      const Values of_h = product("candidate_kernel", "candidate_recurrent_bias", no_x.data(), state, 1);
      for (std::size_t k = 0; k < u; ++k) candidate[k] += reset[k] * of_h[k];
    }
    for (std::size_t k = 0; k < u; ++k) {
      const double update = sigmoid(gates[u + k]);
      h[k] = update * h[k] + (1 - update) * std::tanh(candidate[k]);
    }
  }

 private:
  Values product(const std::string& kernel, const std::string& bias, const double* x, const Values& h,
                 std::size_t gates) const {
    const Values &w = variables_.at(kernel + suffix_), &b = variables_.at(bias + suffix_);
    const auto in = static_cast<std::size_t>(in_), width = gates * h.size();
    Values y = b;
    for (std::size_t i = 0; i < in + h.size(); ++i)
      for (std::size_t k = 0; k < width; ++k) y[k] += (i < in ? x[i] : h[i - in]) * w[i * width + k];
    return y;
  }

  const Net& net_;
  std::int64_t in_;
  std::string suffix_;
  const Variables& variables_;
};

/// Sequence, last h and, for an LSTM, last c of the whole batch.
Values run(const Net& net, const Inputs& in, const Variables& variables) {
  const std::int64_t directions = net.bidirectional ? 2 : 1, out = directions * net.units;
  const auto row = static_cast<std::size_t>(net.steps * net.features);
  Values sequences, states, cells;
  for (std::size_t s = 0; s < in[0].size() / row; ++s) {
    const auto first = in[0].begin() + static_cast<std::ptrdiff_t>(s * row);
    Values x(first, first + static_cast<std::ptrdiff_t>(row));
    const std::int64_t length = in.size() > 1 ? static_cast<std::int64_t>(in[1][s]) : net.steps;
    std::int64_t features = net.features;
    for (std::int64_t l = 0; l < net.layers; ++l) {
      if (net.dropout && (l > 0 || net.variational))
        for (std::int64_t i = 0; i < net.steps * features; ++i) {
          std::string purpose = fmt::format("rnn/dropout_{}", l);
          if (!net.variational) purpose += fmt::format("/{}", i / features);
          x[static_cast<std::size_t>(i)] *= factor(purpose, s, i % features);
        }
      Values y(static_cast<std::size_t>(net.steps * out), 0.0);
      for (std::int64_t d = 0; d < directions; ++d) {
        const std::string suffix = fmt::format("_{}{}", l, d == 1 ? "_reverse" : "");
        const Cell cell(net, features, suffix, variables);
        Values mask(static_cast<std::size_t>(net.units), 1.0);
        for (std::int64_t k = 0; net.recurrent_dropout && k < net.units; ++k)
          mask[static_cast<std::size_t>(k)] = factor("rnn/recurrent_dropout" + suffix, s, k);
        Values h(static_cast<std::size_t>(net.units), 0.0), c = h;
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t t = d == 1 ? length - 1 - i : i;
          cell.step(x.data() + t * features, mask, h, c);
          std::copy(h.begin(), h.end(), y.begin() + t * out + d * net.units);
        }
        if (l + 1 < net.layers) continue;
        states.insert(states.end(), h.begin(), h.end());
        cells.insert(cells.end(), c.begin(), c.end());
      }
      x = y;
      features = out;
    }
    sequences.insert(sequences.end(), x.begin(), x.end());
  }
  sequences.insert(sequences.end(), states.begin(), states.end());
  if (!net.gru) sequences.insert(sequences.end(), cells.begin(), cells.end());
  return sequences;
}

/// `net` says what the options should mean.
LayerCase recurrent(std::string name, const std::string& options, const Net& net,
                    std::vector<float> lengths = {}, std::vector<std::int64_t> microshards = {2, 1}) {
  LayerCase test{.name = std::move(name),
                 .yaml = fmt::format("{}: {{units: {}{}}}", net.gru ? "gru" : "lstm", net.units, options),
                 .inputs = {Shape{net.steps, net.features}},
                 .reference = [net](const Inputs& in, const Variables& v) { return run(net, in, v); },
                 .microshards = std::move(microshards)};
  if (!lengths.empty()) {
    test.inputs.push_back(Shape{1});
    test.fixed_inputs[1] = std::move(lengths);
  }
  return test;
}

LayerCase last_step(std::string name, std::vector<float> lengths) {
  LayerCase test{.name = std::move(name),
                 .yaml = "last_step",
                 .inputs = {Shape{4, 3}},
                 .reference =
                     [](const Inputs& in, const Variables&) {
                       Values y;
                       for (std::size_t s = 0; s < 4; ++s) {
                         const std::size_t length = in.size() > 1 ? static_cast<std::size_t>(in[1][s]) : 4;
                         for (std::size_t k = 0; k < 3; ++k)
                           y.push_back(length == 0 ? 0.0 : in[0][(s * 4 + length - 1) * 3 + k]);
                       }
                       return y;
                     },
                 .microshards = {3, 0, 1}};
  if (!lengths.empty()) {
    test.inputs.push_back(Shape{1});
    test.fixed_inputs[1] = std::move(lengths);
  }
  return test;
}

}  // namespace

void add_recurrent_cases(std::vector<LayerCase>& cases) {
  const std::vector<std::int64_t> with_empty{2, 0, 1};
  cases.push_back(recurrent("lstm", "", {.steps = 3, .features = 2, .units = 3}));
  cases.push_back(recurrent("lstm_smallest", "", {}, {}, {1, 1}));
  cases.push_back(recurrent("lstm_17_units", "", {.steps = 2, .features = 3, .units = 17}));
  cases.push_back(recurrent("lstm_forget_bias", ", forget_bias: -0.5",
                            {.steps = 3, .features = 1, .units = 4, .forget_bias = -0.5}));
  cases.push_back(
      recurrent("lstm_lengths", "", {.steps = 4, .features = 3, .units = 3}, {0, 4, 1}, with_empty));
  cases.push_back(
      recurrent("lstm_all_lengths_zero", "", {.steps = 2, .features = 3, .units = 2}, {0, 0, 1}, {2, 1}));
  cases.push_back(recurrent("lstm_bidirectional", ", bidirectional: true",
                            {.bidirectional = true, .steps = 3, .features = 2, .units = 3}));
  cases.push_back(recurrent("lstm_stacked_bidirectional_lengths", ", layers: 2, bidirectional: true",
                            {.bidirectional = true, .steps = 3, .features = 3, .units = 2, .layers = 2},
                            {3, 0, 2}, with_empty));
  cases.push_back(recurrent("lstm_three_layers", ", layers: 3",
                            {.steps = 3, .features = 4, .units = 2, .layers = 3}, {}, with_empty));
  // A GPU computes these units' products and cells in one kernel.
  cases.push_back(recurrent("lstm_32_units", "", {.steps = 3, .features = 2, .units = 32}, {3, 1, 2}));
  cases.push_back(recurrent("lstm_32_units_bidirectional", ", bidirectional: true",
                            {.bidirectional = true, .steps = 2, .features = 1, .units = 32}, {2, 1, 2}));
  for (const bool after : {false, true}) {
    const std::string name = after ? "gru_reset_after" : "gru", option = after ? ", reset_after: true" : "";
    const Net gru{.gru = true, .reset_after = after};
    Net net = gru;
    cases.push_back(recurrent(name + "_smallest", option, net, {}, {1, 1}));
    net.steps = 3, net.features = 2, net.units = 3;
    cases.push_back(recurrent(name, option, net));
    net.units = 17, net.steps = 2;
    cases.push_back(recurrent(name + "_17_units", option, net));
    net.units = 32, net.steps = 3;
    cases.push_back(recurrent(name + "_32_units", option, net, {3, 1, 2}));
    net.units = 3, net.steps = 4, net.features = 3;
    cases.push_back(recurrent(name + "_lengths", option, net, {4, 0, 2}, with_empty));
    net.steps = 3, net.units = 2, net.layers = 2, net.bidirectional = true;
    cases.push_back(recurrent(name + "_stacked_bidirectional_lengths",
                              option + ", layers: 2, bidirectional: true", net, {1, 3, 0}, with_empty));
  }
  for (LayerCase& test : std::vector<LayerCase>{
           recurrent(
               "lstm_dropout", ", name: rnn, layers: 2, bidirectional: true, dropout: 0.5",
               {.bidirectional = true, .steps = 3, .features = 2, .units = 3, .layers = 2, .dropout = true},
               {2, 3, 1}, with_empty),
           recurrent("lstm_variational_dropout",
                     ", name: rnn, layers: 2, dropout: 0.5, variational: true, recurrent_dropout: 0.5",
                     {.steps = 3,
                     .features = 6,
                     .units = 5,
                     .layers = 2,
                     .dropout = true,
                     .variational = true,
                     .recurrent_dropout = true}),
           recurrent("lstm_32_units_recurrent_dropout", ", name: rnn, recurrent_dropout: 0.5",
                     {.steps = 3, .features = 2, .units = 32, .recurrent_dropout = true}, {3, 1, 2}),
           recurrent("gru_32_units_recurrent_dropout", ", name: rnn, recurrent_dropout: 0.5",
                     {.gru = true, .steps = 3, .features = 2, .units = 32, .recurrent_dropout = true},
                     {2, 3, 1}),
           recurrent("gru_recurrent_dropout", ", name: rnn, recurrent_dropout: 0.5, bidirectional: true",
                     {.gru = true,
                     .bidirectional = true,
                     .steps = 3,
                     .features = 2,
                     .units = 6,
                     .recurrent_dropout = true},
                     {3, 0, 2}, with_empty)}) {
    test.same_in_inference = false;
    cases.push_back(std::move(test));
  }
  cases.push_back(last_step("last_step", {}));
  cases.push_back(last_step("last_step_lengths", {4, 0, 1, 3}));
  cases.push_back({.name = "sequence_length",
                   .yaml = "sequence_length: {padding: -1}",
                   .inputs = {Shape{4}},
                   .reference =
                       [](const Inputs&, const Variables&) {
                         return Values{4, 0, 3};
                       },
                   .microshards = with_empty,
                   .fixed_inputs = {{0, {5, -1, -1, 2, -1, -1, -1, -1, -1, 0, 1, -1}}}});
  cases.push_back({.name = "masking",
                   .yaml = "masking: {value: 2}",
                   .inputs = {Shape{2, 3}},
                   .reference =
                       [](const Inputs& in, const Variables&) {
                         Values y = in[0];
                         y.insert(y.end(), 6, 1.0);
                         return y;
                       },
                   .microshards = with_empty});
  cases.push_back({.name = "masking_of_equal_steps",
                   .yaml = "masking: {value: 2}",
                   .inputs = {Shape{2, 2}},
                   .reference =
                       [](const Inputs&, const Variables&) {
                         return Values{0, 0, 2, 1, 3, 2, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1};
                       },
                   .fixed_inputs = {{0, {2, 2, 2, 1, 3, 2, 2, 2, 2, 2, 0, 1}}}});
}

}  // namespace lockstep
