// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Several inputs, element by element: add, multiply.
#include "model/layers/axes.h"
#include "model/layers/entries.h"

namespace lockstep {

namespace {

/// y = a + b + ..., from the left, each sum rounded to its type, then relu if fused.
class Add final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.kind = "add",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .fusible = !relu_ && count_ == 2 ? Fusible::addition : Fusible::none,
            .backward_reads_input = false,
            .backward_reads_output = relu_};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() >= 2, ErrorKind::config,
                     "layer {}: add takes two inputs or more, not {}; name them in `inputs`", name(),
                     inputs.size());
    for (const Shape& other : inputs.subspan(1))
      LOCKSTEP_REQUIRE(other == inputs[0], ErrorKind::config,
                       "layer {}: add takes inputs of one shape, not {} and {}", name(),
                       inputs[0].to_string(), other.to_string());
    elements_ = inputs[0].num_elements();
    count_ = inputs.size();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    ConstData sum = pass.inputs[0];
    for (std::size_t i = 1; i < count_; ++i) {
      pass.kernels.elementwise.add(pass.lane, pass.n * elements_, sum, pass.inputs[i], pass.outputs[0],
                                   relu_ && i + 1 == count_);
      sum = pass.outputs[0];
    }
  }
  void backward(const Pass& pass) override {
    for (std::size_t i = 0; i < count_; ++i) {
      if (pass.dx[i] == nullptr) continue;
      if (relu_)
        pass.kernels.elementwise.relu_backward(pass.lane, pass.n * elements_, pass.dy[0], pass.outputs[0],
                                               pass.dx[i]);
      else
        pass.kernels.elementwise.scale(pass.lane, pass.n * elements_, 1.0F, pass.dy[0], pass.dx[i]);
    }
  }
  bool fuse(Fusible operation) override {
    if (operation != Fusible::relu || relu_) return false;
    return relu_ = true;
  }

 private:
  std::int64_t elements_ = 0;
  std::size_t count_ = 0;
  bool relu_ = false;
};

/// y = a * b; b may have extents of 1 where a has more, on neighbouring axes, and fewer axes: it is repeated
/// there.
class Multiply final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.kind = "multiply", .inputs = TypeRule::model, .outputs = TypeRule::model};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 2, ErrorKind::config,
                     "layer {}: multiply takes two inputs, not {}; name them in `inputs`", name(),
                     inputs.size());
    const Shape &a = inputs[0], &b = inputs[1];
    const int lead = a.rank() - b.rank();
    int first = a.rank(), last = 0;  // the axes along which b is repeated lie in [first, last)
    bool fits = lead >= 0;
    for (int axis = 0; fits && axis < a.rank(); ++axis) {
      const std::int64_t extent = axis < lead ? 1 : b[axis - lead];
      if (extent == a[axis]) continue;
      fits = extent == 1;
      first = std::min(first, axis);
      last = axis + 1;
    }
    for (int axis = first; fits && axis < last; ++axis) fits = axis < lead || b[axis - lead] == 1;
    LOCKSTEP_REQUIRE(
        fits, ErrorKind::config,
        "layer {}: multiply takes two inputs of one shape, or a second one with 1 for the axes, all "
        "neighbours, along which it is repeated, not {} and {}",
        name(), a.to_string(), b.to_string());
    if (first >= last) {
      shape_ = {a.num_elements(), 1, 1};
    } else {
      shape_ = {product(a, 0, first), product(a, first, last), product(a, last, a.rank())};
    }
    return {a};
  }
  void forward(const Pass& pass) override {
    pass.kernels.broadcast.multiply(pass.lane, of_samples(pass.n), pass.inputs[0], pass.inputs[1],
                                    pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    const BroadcastShape shape = of_samples(pass.n);
    const BroadcastKernels& kernels = pass.kernels.broadcast;
    if (pass.dx[0] != nullptr) kernels.multiply(pass.lane, shape, pass.dy[0], pass.inputs[1], pass.dx[0]);
    if (pass.dx[1] == nullptr) return;
    if (shape.middle == 1)
      kernels.multiply(pass.lane, shape, pass.dy[0], pass.inputs[0], pass.dx[1]);
    else
      kernels.sum(pass.lane, shape, 1.0, pass.dy[0], pass.inputs[0], pass.dx[1]);
  }

 private:
  BroadcastShape of_samples(std::int64_t n) const { return {n * shape_.outer, shape_.middle, shape_.inner}; }
  BroadcastShape shape_;
};

template <typename T>
std::unique_ptr<Layer> make_plain(std::string name, const Params&) {
  return std::make_unique<T>(std::move(name));
}

}  // namespace

const LayerEntry kAddLayer = {"add", "sum of two or more inputs of one shape", {}, make_plain<Add>};
const LayerEntry kMultiplyLayer = {
    "multiply",
    "product of two inputs, the second one repeated where it has an extent of 1",
    {},
    make_plain<Multiply>};

}  // namespace lockstep
