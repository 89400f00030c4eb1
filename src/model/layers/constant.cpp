// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// constant: the same numbers for every sample. It has no inputs.
#include "config/option.h"
#include "core/buffer.h"
#include "core/sizes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

struct ConstantOptions {
  std::vector<double> value;
  std::vector<std::int64_t> shape;
};
using Options = ConstantOptions;
constexpr ParamSpec kTable[] = {
    option<&Options::value>("value", kRequired, between(-1e30, 1e30),
                            "one number for all elements, or all of them, the last axis innermost"),
    option<&Options::shape>("shape", "[1]", between(1, 16777216), "the extents of its output"),
};

/// The values are in the configuration, or all alike.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;

class Constant final : public Layer {
 public:
  using Options = ConstantOptions;
  Constant(std::string name, const Options& o, const Params& p) : Layer(std::move(name)) {
    const std::vector<std::int64_t>& extents = o.shape;
    const std::string_view shape = option_name<&Options::shape>(p);
    if (extents.empty() || extents.size() >= static_cast<std::size_t>(Shape::kMaxRank))
      throw p.error(shape, fmt::format("{} axes", extents.size()),
                    fmt::format("A sample has 1 to {} axes.", Shape::kMaxRank - 1));
    if (!product_up_to(kMostElements, extents))
      throw p.error(shape, fmt::format("{} elements", fmt::join(extents, " x ")),
                    fmt::format("A constant has at most {} elements.", kMostElements));
    shape_ = Shape(extents);
    for (double value : o.value) values_.push_back(static_cast<float>(value));
    const auto elements = static_cast<std::size_t>(shape_.num_elements());
    if (values_.size() == 1) values_.assign(elements, values_.front());
    if (values_.size() != elements)
      throw p.error(
          option_name<&Options::value>(p),
          fmt::format("{} numbers for the {} elements of {}", values_.size(), elements, shape_.to_string()),
          "Give one number, or one for each element.");
  }
  LayerTraits traits() const override {
    return {.kind = "constant", .takes_inputs = false, .backward_reads_input = false};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.empty(), ErrorKind::config, "layer {}: constant takes no inputs, not {}", name(),
                     inputs.size());
    return {shape_};
  }
  LayerMemory prepare(const PrepareContext& context) override {
    if (on_device_.data() != nullptr) return {};  // training and inference share the buffer
    on_device_ = Buffer(context.device, values_.size() * sizeof(float));
    context.device.copy_from_host(on_device_.data(), values_.data(), on_device_.size_bytes());
    return {};
  }
  void forward(const Pass& pass) override {
    pass.kernels.broadcast.repeat(pass.lane, {1, pass.n, shape_.num_elements()}, 1.0F,
                                  on_device_.as<float>().data(), pass.outputs[0]);
  }
  void backward(const Pass&) override {}

 private:
  Shape shape_;
  std::vector<float> values_;
  Buffer on_device_;
};

}  // namespace

extern const LayerEntry kConstantLayer = {"constant", "the same numbers for every sample; reads no layer",
                                          kTable, make_layer<Constant>};

}  // namespace lockstep
