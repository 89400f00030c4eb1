// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// split: cuts its input into parts along an axis; one output per part.
#include "config/option.h"
#include "model/axes.h"
#include "model/layer_table.h"
#include "model/moves.h"

namespace lockstep {

namespace {

struct SplitOptions {
  std::int64_t axis = 0;
  std::optional<std::int64_t> parts;
  std::optional<std::vector<std::int64_t>> sizes;
};
constexpr ParamSpec kTable[] = {
    option<&SplitOptions::axis>("axis", "-1", between(-8, 7), "along which it is cut"),
    option<&SplitOptions::parts>("parts", "null", between(1, 65536).or_null(), "number of equal parts"),
    option<&SplitOptions::sizes>("sizes", "null", between(1, 1e12).or_null(),
                                 "the extents of the parts, instead of `parts`"),
};

class Split final : public MoveLayer {
 public:
  using Options = SplitOptions;
  Split(std::string name, const Options& o, const Params& p)
      : MoveLayer(std::move(name), "split"), axis_(o.axis) {
    if (o.parts.has_value() == o.sizes.has_value())
      throw p.error(o.parts ? option_name<&Options::sizes>(p) : option_name<&Options::parts>(p),
                    "either `parts` or `sizes` must be given, not both");
    parts_wanted_ = o.parts.value_or(parts_wanted_);
    if (o.sizes) sizes_ = *o.sizes;
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    const int axis = axis_of(*this, "axis", axis_, inputs[0]);
    const std::int64_t extent = inputs[0][axis];
    std::vector<std::int64_t> sizes = sizes_;
    if (parts_wanted_ > 0) {
      LOCKSTEP_REQUIRE(extent % parts_wanted_ == 0, ErrorKind::config,
                       "layer {}: {} parts of one size do not fit axis {} of its input {}", name(),
                       parts_wanted_, axis, inputs[0].to_string());
      sizes.assign(static_cast<std::size_t>(parts_wanted_), extent / parts_wanted_);
    }
    std::vector<Shape> outputs;
    std::int64_t sum = 0;
    for (std::int64_t size : sizes) {
      outputs.push_back(with_extent(inputs[0], axis, size));
      sum += size;
    }
    LOCKSTEP_REQUIRE(sum == extent, ErrorKind::config,
                     "layer {}: the sizes add up to {}, axis {} of its input {} has {}", name(), sum, axis,
                     inputs[0].to_string(), extent);
    parts_.set(inputs[0], axis, outputs);
    elements_ = inputs[0].num_elements();
    return outputs;
  }
  void forward(const Pass& pass) override {
    for (std::size_t i = 0; i < parts_.count(); ++i) parts_.cut(pass, i, pass.inputs[0], pass.outputs[i]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    bool all = true;
    for (std::size_t i = 0; i < parts_.count(); ++i) all = all && pass.dy[i] != nullptr;
    if (!all) pass.kernels.elementwise.zero(pass.lane, pass.n * elements_, pass.dx[0]);
    for (std::size_t i = 0; i < parts_.count(); ++i)
      if (pass.dy[i] != nullptr) parts_.join(pass, i, pass.dy[i], pass.dx[0]);
  }

 private:
  std::int64_t axis_, parts_wanted_ = 0, elements_ = 0;
  std::vector<std::int64_t> sizes_;
  AxisParts parts_;
};

}  // namespace

extern const LayerEntry kSplitLayer = {"split", "several outputs: parts along an axis", kTable,
                                       make_layer<Split>};

}  // namespace lockstep
