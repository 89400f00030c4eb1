// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// concat: joins inputs along an axis.
#include "config/option.h"
#include "model/axes.h"
#include "model/layer_table.h"
#include "model/moves.h"

namespace lockstep {

namespace {

struct ConcatOptions {
  std::int64_t axis = 0;
};
constexpr ParamSpec kTable[] = {
    option<&ConcatOptions::axis>("axis", "-1", between(-8, 7), "along which they are joined")};

class Concat final : public MoveLayer {
 public:
  using Options = ConcatOptions;
  Concat(std::string name, const Options& o) : MoveLayer(std::move(name), "concat"), axis_(o.axis) {}
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(!inputs.empty(), ErrorKind::config, "layer {}: concat takes at least one input", name());
    const int axis = axis_of(*this, "axis", axis_, inputs[0]);
    std::int64_t extent = 0;
    for (const Shape& input : inputs) {
      LOCKSTEP_REQUIRE(
          input.rank() == inputs[0].rank() && with_extent(input, axis, 1) == with_extent(inputs[0], axis, 1),
          ErrorKind::config, "layer {}: concat takes inputs that differ along axis {} alone, not {} and {}",
          name(), axis, inputs[0].to_string(), input.to_string());
      extent += input[axis];
    }
    const Shape whole = with_extent(inputs[0], axis, extent);
    parts_.set(whole, axis, {inputs.begin(), inputs.end()});
    return {whole};
  }
  void forward(const Pass& pass) override {
    for (std::size_t i = 0; i < parts_.count(); ++i) parts_.join(pass, i, pass.inputs[i], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    for (std::size_t i = 0; i < parts_.count(); ++i)
      if (pass.dx[i] != nullptr) parts_.cut(pass, i, pass.dy[0], pass.dx[i]);
  }

 private:
  std::int64_t axis_;
  AxisParts parts_;
};

}  // namespace

extern const LayerEntry kConcatLayer = {"concat", "joins its inputs along an axis", kTable,
                                        make_layer<Concat>};

}  // namespace lockstep
