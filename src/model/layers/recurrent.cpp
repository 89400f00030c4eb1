// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts that lstm and gru share; see recurrent.h.
#include "model/layers/recurrent.h"

#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "model/layers/lengths.h"

namespace lockstep {

namespace {

std::size_t bytes(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

}  // namespace

RecurrentLayer::RecurrentLayer(std::string name, const char* kind, const RecurrentOptions& o, const Params& p)
    : Layer(std::move(name)),
      kind_(kind),
      units_(o.units),
      layers_(o.layers),
      bidirectional_(o.bidirectional),
      variational_(o.variational),
      dropout_(o.dropout),
      recurrent_dropout_(o.recurrent_dropout),
      kernel_initializer_(make_initializer(o.kernel_initializer)) {
  if (!dropout_.is_zero() && layers_ == 1 && !variational_)
    throw p.error("dropout", "applies between stacked layers, but there is only one layer",
                  "Use layers: 2, variational: true, or a dropout layer before or after.");
}

LayerTraits RecurrentLayer::traits() const {
  LayerTraits traits{.kind = kind_,
                     .inputs = TypeRule::model,
                     .outputs = TypeRule::model,
                     .float32_input = 1,
                     .backward_reads_input = false};
  for (const Stacked& stacked : stack_)
    for (const Direction& direction : stacked.directions)
      for (const StepProduct& product : direction.products) {
        traits.flops_per_sample += product.flops_per_sample();
        if (traits.widened_products.empty()) traits.widened_products = product.widened_products();
      }
  return traits;
}

std::vector<Shape> RecurrentLayer::infer(std::span<const Shape> inputs) {
  LOCKSTEP_REQUIRE(!inputs.empty() && inputs.size() <= 2, ErrorKind::config,
                   "layer {}: {} takes a sequence and optionally its length, not {} inputs", name(), kind(),
                   inputs.size());
  LOCKSTEP_REQUIRE(inputs[0].rank() == 2, ErrorKind::config,
                   "layer {}: {} takes steps x features per sample, not {}", name(), kind(),
                   inputs[0].to_string());
  LOCKSTEP_REQUIRE(inputs.size() == 1 || inputs[1] == Shape{1}, ErrorKind::config,
                   "layer {}: {}'s second input is the length of shape {}, not {}", name(), kind(),
                   Shape{1}.to_string(), inputs[1].to_string());
  steps_ = inputs[0][0];
  features_ = inputs[0][1];
  lengths_ = inputs.size() == 2;
  stack_.clear();
  for (std::int64_t l = 0; l < layers_; ++l) {
    Stacked& stacked = stack_.emplace_back();
    stacked.in = l == 0 ? features_ : directions() * units_;
    stacked.dropout = !dropout_.is_zero() && (l > 0 || variational_);
    for (std::int64_t t = 0; t < steps_; ++t)
      stacked.purposes.push_back(philox_purpose(variational_
                                                    ? fmt::format("{}/dropout_{}", name(), l)
                                                    : fmt::format("{}/dropout_{}/{}", name(), l, t)));
    for (std::int64_t d = 0; d < directions(); ++d) {
      Direction& direction = stacked.directions.emplace_back();
      direction.in = stacked.in;
      direction.reverse = d == 1;
      direction.suffix = fmt::format("_{}{}", l, d == 1 ? "_reverse" : "");
      direction.dropout_purpose = philox_purpose(name() + "/recurrent_dropout" + direction.suffix);
      make_products(direction);
    }
  }
  const std::int64_t out = directions() * units_;
  std::vector<Shape> outputs{Shape{steps_, out}, Shape{out}};
  if (has_cell_state()) outputs.push_back(Shape{out});
  return outputs;
}

void RecurrentLayer::declare(VariableStore& variables) {
  for (Stacked& stacked : stack_)
    for (Direction& direction : stacked.directions)
      for (StepProduct& product : direction.products) product.declare(variables);
}

LayerMemory RecurrentLayer::prepare(const PrepareContext& context) {
  on_host_ = context.device.is_host();
  type_ = context.type;
  std::size_t products = context.kernels.scratch_bytes;
  for (Stacked& stacked : stack_)
    for (Direction& direction : stacked.directions)
      for (StepProduct& product : direction.products) {
        product.prepare(context, type_);
        products = std::max(products, product.scratch_bytes());
      }
  LayerMemory memory;
  for (const std::int64_t n : context.sample_counts) {
    std::int64_t floats = Work{*this, n, nullptr}.floats(context.training);
    if (!context.training) floats += Memory{*this, n, false, nullptr}.floats();
    memory.scratch_bytes = std::max(memory.scratch_bytes, bytes(floats) + products);
  }
  scratch_bytes_[context.training ? 1 : 0] = memory.scratch_bytes;
  if (context.training)
    memory.saved_bytes = bytes(Memory{*this, context.max_samples(), true, nullptr}.floats());
  return memory;
}

void RecurrentLayer::refresh_weights(const KernelTable&, const Lane& lane, const VariableStore& variables,
                                     bool /*training*/) {
  for (Stacked& stacked : stack_)
    for (Direction& direction : stacked.directions)
      for (StepProduct& product : direction.products) product.refresh(lane, variables);
}

// The layout of Memory: lengths, x of each layer, then the directions: state, h, and h as products take it if
// that is different.

std::int64_t RecurrentLayer::Memory::x_floats(std::size_t stacked) const {
  return room(layer.steps_ * n * layer.stack_[stacked].in, layer.type_);
}
std::int64_t RecurrentLayer::Memory::state_floats() const {
  return padded(layer.cell_floats(layer.steps_ * n));
}
std::int64_t RecurrentLayer::Memory::h_floats() const {
  return room(layer.steps_ * n * layer.units_, layer.state_type());
}
std::int64_t RecurrentLayer::Memory::direction_floats() const {
  const std::int64_t numbers = layer.steps_ * n * layer.units_;
  return state_floats() + h_floats() + (layer.has_factors(training) ? room(numbers, layer.type_) : 0);
}
float* RecurrentLayer::Memory::x_at(std::size_t stacked) const {
  float* at = base + padded(n);
  for (std::size_t l = 0; l < stacked; ++l) at += x_floats(l);
  return at;
}
float* RecurrentLayer::Memory::direction(std::size_t stacked, std::size_t direction) const {
  float* first = x_at(layer.stack_.size());
  if (!training) return first;
  const auto number =
      static_cast<std::int64_t>(stacked) * layer.directions() + static_cast<std::int64_t>(direction);
  return first + number * direction_floats();
}
std::int64_t RecurrentLayer::Memory::floats() const {
  std::int64_t all = padded(n);
  for (std::size_t l = 0; l < layer.stack_.size(); ++l) all += x_floats(l);
  return all + direction_floats() * (training ? layer.layers_ * layer.directions() : 1);
}

// The layout of Work: the memory of a step, gradients of the states, four gradients of a layer's whole input,
// and the gradients of the gates.

std::int64_t RecurrentLayer::Work::gradient_floats() const {
  std::int64_t widest = 0;
  for (const Stacked& stacked : layer.stack_) widest = std::max(widest, stacked.in);
  return room(layer.steps_ * n * widest, layer.type_);
}
std::int64_t RecurrentLayer::Work::floats(bool training) const {
  const std::int64_t small = padded(n * layer.small_width());
  return training ? small + 2 * state_floats() + 4 * gradient_floats() + gates_floats() : small;
}

RecurrentLayer::Memory RecurrentLayer::memory_of(const Pass& pass) const {
  return {*this, pass.n, pass.training, static_cast<float*>(pass.training ? pass.saved : pass.lane.scratch)};
}

RecurrentLayer::Work RecurrentLayer::work_of(const Pass& pass) const {
  auto* scratch = static_cast<float*>(pass.lane.scratch);
  if (!pass.training) scratch += Memory{*this, pass.n, false, nullptr}.floats();
  return {*this, pass.n, scratch};
}

RecurrentLayer::Run RecurrentLayer::run_of(const Pass& pass, std::size_t stacked, std::size_t direction,
                                           std::int64_t longest) const {
  const std::size_t needed = scratch_bytes_[pass.training ? 1 : 0];
  LOCKSTEP_CHECK(pass.lane.scratch_bytes >= needed, "lane {} has {} bytes of scratch memory, {} are needed",
                 pass.lane.index, pass.lane.scratch_bytes, needed);
  const Memory memory = memory_of(pass);
  const Work work = work_of(pass);
  float* state = memory.direction(stacked, direction);
  float* h_at = state + memory.state_floats();
  const Data h(h_at, state_type());
  const Data factor = has_factors(pass.training) ? Data(h_at + memory.h_floats(), type_) : h;
  const float* lengths = nullptr;
  if (lengths_) lengths = pass.training ? memory.lengths() : pass.inputs[1];
  Lane lane = pass.lane;
  float* rest = work.base + work.floats(pass.training);
  lane.scratch_bytes -=
      static_cast<std::size_t>(reinterpret_cast<char*>(rest) - static_cast<char*>(lane.scratch));
  lane.scratch = rest;
  return {.pass = pass,
          .lane = lane,
          .direction = stack_[stacked].directions[direction],
          .x = memory.x(stacked),
          .state = state,
          .h = h,
          .factor = factor,
          .small = work.small(),
          .gradients = pass.training && type_ != DType::f32 ? work.gates() : nullptr,
          .more_dx = pass.training ? work.gradient(3) : nullptr,
          .lengths = lengths,
          .longest = longest};
}

void RecurrentLayer::drop_input(const Pass& pass, const Stacked& stacked, Data values) const {
  if (!pass.training || !stacked.dropout) return;
  for (std::int64_t t = 0; t < steps_; ++t) {
    const Data rows = values.offset(t * pass.n * stacked.in);
    pass.kernels.elementwise.dropout(pass.lane, pass.n, stacked.in, rows, dropout_.value(), pass.seed,
                                     stacked.purposes[static_cast<std::size_t>(t)],
                                     static_cast<std::uint32_t>(pass.step),
                                     static_cast<std::uint32_t>(pass.first_sample), rows);
  }
}

void RecurrentLayer::drop_state(const Run& run, std::int64_t t) const {
  const Pass& pass = run.pass;
  if (!pass.training || recurrent_dropout_.is_zero()) return;
  const Data factor = rows(run, run.factor, units_, t);
  const Data h = state_type() == type_ ? rows(run, run.h, units_, t) : factor;
  pass.kernels.elementwise.dropout(run.lane, pass.n, units_, h, recurrent_dropout_.value(), pass.seed,
                                   run.direction.dropout_purpose, static_cast<std::uint32_t>(pass.step),
                                   static_cast<std::uint32_t>(pass.first_sample), factor);
}

void RecurrentLayer::drop_gradient(const Run& run, float* dh) const {
  if (recurrent_dropout_.is_zero()) return;
  const Pass& pass = run.pass;
  pass.kernels.elementwise.dropout(run.lane, pass.n, units_, dh, recurrent_dropout_.value(), pass.seed,
                                   run.direction.dropout_purpose, static_cast<std::uint32_t>(pass.step),
                                   static_cast<std::uint32_t>(pass.first_sample), dh);
}

void RecurrentLayer::last_states(const Run& run, std::size_t direction) const {
  const Pass& pass = run.pass;
  const std::int64_t last = step_at(run, steps_ - 1), stride = directions() * units_;
  const std::int64_t column = static_cast<std::int64_t>(direction) * units_;
  const auto copy = [&](ConstData state, Data output) {
    if (output != nullptr)
      pass.kernels.sequence.copy_rows(pass.lane, pass.n, units_, state, units_, output.offset(column),
                                      stride);
  };
  copy(rows(run, run.h, units_, last), pass.outputs[1]);
  if (has_cell_state()) copy(rows(run, cell_states(run), units_, last), pass.outputs[2]);
}

void RecurrentLayer::forward(const Pass& pass) {
  const Memory memory = memory_of(pass);
  std::int64_t longest = steps_;
  if (lengths_ && on_host_) longest = longest_of(*this, pass.inputs[1], pass.n, pass.first_sample, steps_);
  if (lengths_ && pass.training)
    pass.kernels.sequence.copy_rows(pass.lane, 1, pass.n, pass.inputs[1], pass.n, memory.lengths(), pass.n);
  pass.kernels.sequence.to_time_major(pass.lane, {pass.n, steps_, features_}, pass.inputs[0], memory.x(0));
  const std::int64_t out = directions() * units_;
  for (std::size_t l = 0; l < stack_.size(); ++l) {
    drop_input(pass, stack_[l], memory.x(l));
    const bool top = l + 1 == stack_.size();
    const Data y = top ? pass.outputs[0] : memory.x(l + 1);
    for (std::size_t d = 0; d < stack_[l].directions.size(); ++d) {
      const Run run = run_of(pass, l, d, longest);
      const Data own = y == nullptr ? y : y.offset(static_cast<std::int64_t>(d) * units_);
      run_forward(run, top ? Output<Data>{own, steps_ * out, out} : Output<Data>{own, out, pass.n * out});
      if (top) last_states(run, d);
    }
  }
}

void RecurrentLayer::backward(const Pass& pass) {
  const Memory memory = memory_of(pass);
  const Work work = work_of(pass);
  std::int64_t longest = steps_;
  if (lengths_ && on_host_) longest = longest_of(*this, memory.lengths(), pass.n, pass.first_sample, steps_);
  const std::int64_t out = directions() * units_;
  const ElementwiseKernels& elementwise = pass.kernels.elementwise;
  for (std::size_t l = stack_.size(); l-- > 0;) {
    const bool top = l + 1 == stack_.size();
    const ConstData dy = top ? pass.dy[0] : ConstData(work.gradient(static_cast<int>((l + 1) % 2)));
    const Data dx = l == 0 && pass.dx[0] == nullptr ? Data() : work.gradient(static_cast<int>(l % 2));
    for (std::size_t d = 0; d < stack_[l].directions.size(); ++d) {
      const std::int64_t column = static_cast<std::int64_t>(d) * units_;
      const auto last = [&](ConstData gradient, float* to) {
        if (top && gradient != nullptr)
          pass.kernels.sequence.copy_rows(pass.lane, pass.n, units_, gradient.offset(column), out, to,
                                          units_);
        else
          elementwise.zero(pass.lane, pass.n * units_, to);
      };
      last(pass.dy[1], work.dh());
      if (has_cell_state()) last(pass.dy[2], work.dc());
      const ConstData own = dy == nullptr ? dy : dy.offset(column);
      const bool second = dx != nullptr && d > 0;
      const Data own_dx = second ? work.gradient(2) : dx;
      run_backward(
          run_of(pass, l, d, longest),
          top ? Output<ConstData>{own, steps_ * out, out} : Output<ConstData>{own, out, pass.n * out},
          work.dh(), work.dc(), own_dx);
      if (second) elementwise.accumulate(pass.lane, steps_ * pass.n * stack_[l].in, dx, own_dx);
    }
    if (dx != nullptr) drop_input(pass, stack_[l], dx);
  }
  if (pass.dx[0] != nullptr)
    pass.kernels.sequence.to_batch_major(pass.lane, {pass.n, steps_, features_}, work.gradient(0),
                                         pass.dx[0]);
  if (lengths_ && pass.dx[1] != nullptr) elementwise.zero(pass.lane, pass.n, pass.dx[1]);
}

}  // namespace lockstep
