// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a model as operators of ONNX: their layout, and what section data makes of their values
// before the layers read them.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "exchange/onnx_writer.h"

namespace lockstep {

namespace {

using Integers = std::vector<std::int64_t>;

/// D, H, W, C -> C, D, H, W.
Shape channels_first(const Shape& shape) {
  Integers extents = {shape.last()};
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return Shape(extents);
}

/// A value in one layout while the steps are written.
class InputSteps {
 public:
  InputSteps(OnnxWriter& to, std::string name, const Shape& shape)
      : to_(to),
        name_(std::move(name)),
        at_(name_),
        shape_(shape),
        first_(to.net.inputs_channels_first && shape.rank() >= 2) {
    to.graph.add_input(name_, first_ ? channels_first(shape) : shape);
  }

  void write(const OnnxStep& step) {
    using Kind = OnnxStep::Kind;
    switch (step.kind) {
      case Kind::scale:
        if (any_but(step.first, 1)) apply("Mul", list(step.first));
        if (any_but(step.second, 0)) apply("Add", list(step.second));
        break;
      case Kind::normalize:
        if (any_but(step.first, 0)) apply("Sub", list(step.first));
        if (any_but(step.second, 1)) apply("Div", list(step.second));
        break;
      case Kind::clip:
        at_ = add("Clip", {at_, list(step.first), list(step.second)});
        break;
      case Kind::log:
        apply("Max", number(0));
        apply("Add", list(step.first));
        at_ = add("Log", {at_});
        break;
      case Kind::standardize:
        standardize();
        break;
      case Kind::whiten:
        whiten(step);
        break;
    }
    shape_ = step.out;
  }

  void finish() {
    if (first_)
      to_.set_first(name_, shape_, at_);
    else
      to_.set_last(name_, shape_, at_);
  }

 private:
  static bool any_but(const std::vector<float>& values, float nothing) {
    return std::ranges::any_of(values, [&](float value) { return value != nothing; });
  }
  std::string add(std::string_view operation, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {}) {
    return to_.graph.add(operation, name_ + "/step", inputs, attributes);
  }
  void apply(std::string_view operation, const std::string& other) { at_ = add(operation, {at_, other}); }
  std::string number(float value) { return to_.number(name_ + "/number", value); }
  std::string constant(const std::vector<float>& values, const Integers& extents) {
    return to_.graph.constant(name_ + "/values", values, extents);
  }

  void make_last() {
    if (!first_) return;
    Integers order = {0};
    for (int axis = 2; axis <= shape_.rank(); ++axis) order.push_back(axis);
    order.push_back(1);
    at_ = add("Transpose", {at_}, {{"perm", order}});
    first_ = false;
  }

  /// One value, or one per channel, or one per value, for an operation with the sample.
  std::string list(const std::vector<float>& values) {
    if (values.size() == 1) return constant(values, {});
    const std::int64_t channels = shape_.rank() == 0 ? 1 : shape_.last();
    if (std::ssize(values) == channels) {
      Integers extents = {channels};
      if (first_) extents.resize(static_cast<std::size_t>(shape_.rank()), 1);
      return constant(values, extents);
    }
    LOCKSTEP_CHECK(std::ssize(values) == shape_.num_elements());
    make_last();
    return constant(values, Integers(shape_.extents().begin(), shape_.extents().end()));
  }

  void standardize() {
    Integers axes;
    for (int axis = 1; axis <= shape_.rank(); ++axis) axes.push_back(axis);
    const auto mean = [&](const std::string& of) { return add("ReduceMean", {of}, {{"axes", axes}}); };
    const std::string centred = add("Sub", {at_, mean(at_)});
    const std::string variance = mean(add("Mul", {centred, centred}));
    const auto least = static_cast<float>(1 / std::sqrt(static_cast<double>(shape_.num_elements())));
    at_ = add("Div", {centred, add("Max", {add("Sqrt", {variance}), number(least)})});
  }

  void whiten(const OnnxStep& step) {
    make_last();
    const auto values = std::ssize(step.first), components = std::ssize(step.second) / values;
    if (!step.over_channels) at_ = to_.reshaped(name_ + "/vector", at_, Shape{values});
    apply("Sub", constant(step.first, {values}));
    std::vector<float> columns(step.second.size());  // x W^T
    for (std::int64_t row = 0; row < components; ++row)
      for (std::int64_t i = 0; i < values; ++i)
        columns[static_cast<std::size_t>(i * components + row)] =
            step.second[static_cast<std::size_t>(row * values + i)];
    apply("MatMul", constant(columns, {values, components}));
    if (!step.over_channels && step.out.rank() != 1) at_ = to_.reshaped(name_ + "/sample", at_, step.out);
  }

  OnnxWriter& to_;
  const std::string name_;
  std::string at_;
  Shape shape_;  ///< channels last
  bool first_;   ///< the value at_ is channels first
};

}  // namespace

void write_input(OnnxWriter& to, const std::string& name, const OnnxInput& input) {
  InputSteps steps(to, name, input.shape);
  for (const OnnxStep& step : input.steps) steps.write(step);
  steps.finish();
}

}  // namespace lockstep
