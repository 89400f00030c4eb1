// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// transpose: the axes in another order.
#include <algorithm>

#include "config/option.h"
#include "model/axes.h"
#include "model/layer_table.h"
#include "model/moves.h"

namespace lockstep {

namespace {

struct TransposeOptions {
  std::vector<std::int64_t> permutation;
};
constexpr ParamSpec kTable[] = {option<&TransposeOptions::permutation>(
    "permutation", kRequired, between(0, 7), "the input axis of each output axis")};

class Transpose final : public MoveLayer {
 public:
  using Options = TransposeOptions;
  Transpose(std::string name, const Options& o, const Params& p)
      : MoveLayer(std::move(name), "transpose"), permutation_(o.permutation) {
    std::vector<std::int64_t> sorted = permutation_;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t axis = 0; axis < sorted.size(); ++axis)
      if (sorted[axis] != static_cast<std::int64_t>(axis))
        throw p.error(option_name<&Options::permutation>(p),
                      fmt::format("[{}] is no permutation", fmt::join(permutation_, ", ")),
                      "Name each axis of the input once, from 0 on.");
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    const Shape& input = inputs[0];
    LOCKSTEP_REQUIRE(static_cast<int>(permutation_.size()) == input.rank(), ErrorKind::config,
                     "layer {}: a permutation of {} axes, its input {} has {}", name(), permutation_.size(),
                     input.to_string(), input.rank());
    std::vector<std::int64_t> extents;
    for (std::int64_t axis : permutation_) extents.push_back(input[static_cast<int>(axis)]);
    const Shape output(extents);
    there_ = StridedCopy();
    there_.add_axis(1, input.num_elements(), input.num_elements());
    for (int axis = 0; axis < output.rank(); ++axis)
      there_.add_axis(
          output[axis],
          product(input, static_cast<int>(permutation_[static_cast<std::size_t>(axis)]) + 1, input.rank()),
          product(output, axis + 1, output.rank()));
    back_ = there_.reversed();
    return {output};
  }
  void forward(const Pass& pass) override {
    pass.kernels.layout.copy(pass.lane, there_, pass.n, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) pass.kernels.layout.copy(pass.lane, back_, pass.n, pass.dy[0], pass.dx[0]);
  }

 private:
  std::vector<std::int64_t> permutation_;
  StridedCopy there_, back_;
};

}  // namespace

extern const LayerEntry kTransposeLayer = {"transpose", "axes in another order", kTable,
                                           make_layer<Transpose>};

}  // namespace lockstep
