// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// reduce: mean, sum or maximum over axes of each sample. Axes that are not neighbours are first made so by a
// copy into scratch memory; the gradient takes the reverse copy.
#include <algorithm>

#include "config/option.h"
#include "model/axes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

struct ReduceOptions {
  std::string operation;
  std::vector<std::int64_t> axes;
  bool keep_dims = false;
};
constexpr ParamSpec kTable[] = {
    option<&ReduceOptions::operation>("operation", kRequired, one_of("mean|max|sum"), "what is computed"),
    option<&ReduceOptions::axes>("axes", "[]", between(-8, 7), "axes to reduce; an empty list: all of them"),
    option<&ReduceOptions::keep_dims>("keep_dims", "false", {}, "keep the reduced axes, with an extent of 1"),
};

class Reduce final : public Layer {
 public:
  using Options = ReduceOptions;
  Reduce(std::string name, const Options& o)
      : Layer(std::move(name)), operation_(o.operation), axes_(o.axes), keep_dims_(o.keep_dims) {}
  LayerTraits traits() const override {
    return {.kind = "reduce",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .backward_reads_input = false};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    const Shape& input = inputs[0];
    const std::vector<int> axes = axes_of(*this, "axes", axes_, input);
    const int first = axes.front(), last = axes.back() + 1;
    std::vector<std::int64_t> extents;
    std::int64_t middle = 1;
    for (int axis = 0; axis < input.rank(); ++axis) {
      const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
      if (reduced) middle *= input[axis];
      if (!reduced || keep_dims_) extents.push_back(reduced ? 1 : input[axis]);
    }
    if (extents.empty()) extents.push_back(1);  // a sample has one axis at least
    LOCKSTEP_REQUIRE(middle <= std::int64_t{INT32_MAX}, ErrorKind::config,
                     "layer {}: {} numbers of its input {} are reduced to one, but the limit is {}", name(),
                     middle, input.to_string(), INT32_MAX);
    elements_ = input.num_elements();
    moves_ = last - first != static_cast<int>(axes.size());
    shape_ = {
        .outer = product(input, 0, first), .middle = middle, .inner = product(input, last, input.rank())};
    if (moves_) {  // the kept axes first, the reduced ones last
      shape_ = {.outer = elements_ / middle, .middle = middle, .inner = 1};
      set_moves(input, axes);
    }
    return {Shape(extents)};
  }
  LayerMemory prepare(const PrepareContext& context) override {
    const std::int64_t most = context.max_samples();
    LayerMemory memory;
    if (context.training && operation_ == "max")
      memory.saved_bytes =
          static_cast<std::size_t>(most * shape_.outer * shape_.inner) * sizeof(std::int32_t);
    if (!moves_) return memory;
    // After the kernels' own part of the scratch memory.
    offset_ = (context.kernels.scratch_bytes + 63) / 64 * 64;
    memory.scratch_bytes = offset_ + static_cast<std::size_t>(most * elements_) * size_in_bytes(context.type);
    return memory;
  }
  void forward(const Pass& pass) override {
    ConstData x = pass.inputs[0];
    if (moves_) {
      const Data together = scratch(pass, x.type());
      pass.kernels.layout.copy(pass.lane, together_, pass.n, x, together);
      x = together;
    }
    const BroadcastShape shape = of_samples(pass.n);
    if (operation_ == "max")
      pass.kernels.broadcast.maximum(pass.lane, shape, x, pass.outputs[0],
                                     static_cast<std::int32_t*>(pass.saved));
    else
      pass.kernels.broadcast.sum(pass.lane, shape, factor(), x, nullptr, pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    const Data dx = moves_ ? scratch(pass, pass.dx[0].type()) : pass.dx[0];
    const BroadcastShape shape = of_samples(pass.n);
    if (operation_ == "max")
      pass.kernels.broadcast.maximum_backward(pass.lane, shape, pass.dy[0],
                                              static_cast<const std::int32_t*>(pass.saved), dx);
    else
      pass.kernels.broadcast.repeat(pass.lane, shape, static_cast<float>(factor()), pass.dy[0], dx);
    if (moves_) pass.kernels.layout.copy(pass.lane, apart_, pass.n, dx, pass.dx[0]);
  }

 private:
  void set_moves(const Shape& input, const std::vector<int>& axes) {
    std::vector<int> order;
    for (int axis = 0; axis < input.rank(); ++axis)
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) order.push_back(axis);
    order.insert(order.end(), axes.begin(), axes.end());
    together_ = StridedCopy();
    together_.add_axis(1, elements_, elements_);
    std::int64_t stride = elements_;
    for (int axis : order) {
      stride /= input[axis];
      together_.add_axis(input[axis], product(input, axis + 1, input.rank()), stride);
    }
    apart_ = together_.reversed();
  }
  double factor() const { return operation_ == "mean" ? 1.0 / static_cast<double>(shape_.middle) : 1.0; }
  BroadcastShape of_samples(std::int64_t n) const { return {n * shape_.outer, shape_.middle, shape_.inner}; }
  Data scratch(const Pass& pass, DType type) const {
    return {static_cast<char*>(pass.lane.scratch) + offset_, type};
  }

  std::string operation_;
  std::vector<std::int64_t> axes_;
  bool keep_dims_, moves_ = false;
  BroadcastShape shape_;  ///< of a sample
  std::int64_t elements_ = 0;
  StridedCopy together_, apart_;
  std::size_t offset_ = 0;
};

}  // namespace

extern const LayerEntry kReduceLayer = {"reduce", "mean, sum or maximum over axes", kTable,
                                        make_layer<Reduce>};

}  // namespace lockstep
