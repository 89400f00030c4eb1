// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers whose output is their input in another shape: flatten, reshape, squeeze, expand_dims, identity. They
// are views: they take no memory and are never called.
#include <algorithm>

#include "config/option.h"
#include "core/sizes.h"
#include "model/axes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

struct ReshapeOptions {
  std::vector<std::int64_t> shape;
};
constexpr ParamSpec kReshapeTable[] = {option<&ReshapeOptions::shape>(
    "shape", kRequired, between(-1, 1e12),
    "the new extents, without the samples; one may be -1 and is then computed")};
struct SqueezeOptions {
  std::vector<std::int64_t> axes;
};
constexpr ParamSpec kSqueezeTable[] = {option<&SqueezeOptions::axes>(
    "axes", "[]", between(-8, 7), "axes of extent 1 to remove; none: all that have extent 1")};
struct ExpandDimsOptions {
  std::int64_t axis = 0;
};
constexpr ParamSpec kExpandTable[] = {option<&ExpandDimsOptions::axis>(
    "axis", kRequired, between(-8, 7), "position of the new axis in the output; -1: after the others")};

/// A view of its only input.
class ViewLayer : public Layer {
 public:
  ViewLayer(std::string name, const char* kind) : Layer(std::move(name)), kind_(kind) {}
  LayerTraits traits() const final {
    return {.kind = kind_,
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .view = View::always};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) final {
    require_one_input(*this, inputs);
    return {shape_of(inputs[0])};
  }
  void forward(const Pass&) final {}
  void backward(const Pass&) final {}

 protected:
  virtual Shape shape_of(const Shape& input) = 0;

 private:
  const char* kind_;
};

class Flatten final : public ViewLayer {
 public:
  explicit Flatten(std::string name) : ViewLayer(std::move(name), "flatten") {}

 private:
  Shape shape_of(const Shape& input) override { return Shape{input.num_elements()}; }
};

class Identity final : public ViewLayer {
 public:
  explicit Identity(std::string name) : ViewLayer(std::move(name), "identity") {}

 private:
  Shape shape_of(const Shape& input) override { return input; }
};

class Reshape final : public ViewLayer {
 public:
  using Options = ReshapeOptions;
  Reshape(std::string name, const Options& o, const Params& p)
      : ViewLayer(std::move(name), "reshape"), extents_(o.shape) {
    const std::string_view shape = option_name<&Options::shape>(p);
    const auto open = std::count(extents_.begin(), extents_.end(), -1);
    if (open > 1) throw p.error(shape, "more than one extent is -1", "One can be left to be found.");
    if (std::find(extents_.begin(), extents_.end(), 0) != extents_.end() || extents_.empty() ||
        extents_.size() >= static_cast<std::size_t>(Shape::kMaxRank))
      throw p.error(shape, fmt::format("[{}] is not a shape", fmt::join(extents_, ", ")),
                    fmt::format("A sample has 1 to {} axes of at least 1.", Shape::kMaxRank - 1));
  }

 private:
  Shape shape_of(const Shape& input) override {
    std::vector<std::int64_t> extents = extents_;
    std::vector<std::int64_t> given = extents;
    std::erase(given, -1);
    const std::int64_t elements = input.num_elements();
    const std::int64_t known = product_up_to(elements, given).value_or(elements + 1);
    for (std::int64_t& extent : extents)
      if (extent == -1) extent = elements / known;
    LOCKSTEP_REQUIRE(product_up_to(elements, extents) == elements, ErrorKind::config,
                     "layer {}: the {} elements of its input {} do not fit the shape [{}]", name(), elements,
                     input.to_string(), fmt::join(extents_, ", "));
    return Shape(extents);
  }
  std::vector<std::int64_t> extents_;
};

class Squeeze final : public ViewLayer {
 public:
  using Options = SqueezeOptions;
  Squeeze(std::string name, const Options& o) : ViewLayer(std::move(name), "squeeze"), axes_(o.axes) {}

 private:
  Shape shape_of(const Shape& input) override {
    const std::vector<int> axes = axes_of(*this, "axes", axes_, input);
    std::vector<std::int64_t> left;
    for (int axis = 0; axis < input.rank(); ++axis) {
      const bool named = std::find(axes.begin(), axes.end(), axis) != axes.end();
      LOCKSTEP_REQUIRE(!named || axes_.empty() || input[axis] == 1, ErrorKind::config,
                       "layer {}: squeeze cannot remove axis {} of its input {}: its extent is not 1", name(),
                       axis, input.to_string());
      if (!named || input[axis] != 1) left.push_back(input[axis]);
    }
    if (left.empty()) left.push_back(1);  // a sample has one axis at least
    return Shape(left);
  }
  std::vector<std::int64_t> axes_;
};

class ExpandDims final : public ViewLayer {
 public:
  using Options = ExpandDimsOptions;
  ExpandDims(std::string name, const Options& o) : ViewLayer(std::move(name), "expand_dims"), axis_(o.axis) {}

 private:
  Shape shape_of(const Shape& input) override {
    const std::int64_t rank = input.rank() + 1;
    LOCKSTEP_REQUIRE(rank < Shape::kMaxRank, ErrorKind::config, "layer {}: its input {} already has {} axes",
                     name(), input.to_string(), input.rank());
    LOCKSTEP_REQUIRE(axis_ >= -rank && axis_ < rank, ErrorKind::config,
                     "layer {}: axis {} is not an axis of an output of {} axes; its input is {}", name(),
                     axis_, rank, input.to_string());
    std::vector<std::int64_t> extents(input.extents().begin(), input.extents().end());
    extents.insert(extents.begin() + (axis_ < 0 ? axis_ + rank : axis_), 1);
    return Shape(extents);
  }
  std::int64_t axis_;
};

}  // namespace

extern const LayerEntry kFlattenLayer = {
    "flatten", "one row of features per sample", {}, make_layer<Flatten>};
extern const LayerEntry kReshapeLayer = {"reshape", "the same numbers in another shape", kReshapeTable,
                                         make_layer<Reshape>};
extern const LayerEntry kSqueezeLayer = {"squeeze", "removes axes of extent 1", kSqueezeTable,
                                         make_layer<Squeeze>};
extern const LayerEntry kExpandDimsLayer = {"expand_dims", "adds an axis of extent 1", kExpandTable,
                                            make_layer<ExpandDims>};
extern const LayerEntry kIdentityLayer = {
    "identity", "its input, under another name", {}, make_layer<Identity>};

}  // namespace lockstep
