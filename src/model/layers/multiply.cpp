// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// multiply: the product of two inputs, element by element.
#include <algorithm>

#include "model/axes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

/// y = a * b. b may have fewer axes than a, and extents of 1 on neighbouring axes; it is repeated along
/// those.
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
    int first = a.rank(), last = 0;  // b is repeated along the axes [first, last)
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

}  // namespace

extern const LayerEntry kMultiplyLayer = {
    "multiply",
    "product of two inputs, the second one repeated where it has an extent of 1",
    {},
    make_layer<Multiply>};

}  // namespace lockstep
