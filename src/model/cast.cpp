// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/cast.h"

namespace lockstep {

namespace {

class Cast final : public Layer {
 public:
  Cast(std::string name, const Shape& shape, DType from, DType to)
      : Layer(std::move(name)), shape_(shape), from_(from), to_(to) {}

  LayerTraits traits() const override {
    return {.kind = "cast", .inputs = rule(from_), .outputs = rule(to_), .backward_reads_input = false};
  }
  std::vector<Shape> infer(std::span<const Shape>) override { return {shape_}; }
  void forward(const Pass& pass) override {
    pass.kernels.elementwise.convert(pass.lane, pass.n * shape_.num_elements(), pass.inputs[0],
                                     pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.elementwise.convert(pass.lane, pass.n * shape_.num_elements(), pass.dy[0], pass.dx[0]);
  }

 private:
  static TypeRule rule(DType type) { return type == DType::f32 ? TypeRule::float32 : TypeRule::model; }

  Shape shape_;
  DType from_, to_;
};

}  // namespace

std::unique_ptr<Layer> make_cast(std::string name, const Shape& shape, DType from, DType to) {
  return std::make_unique<Cast>(std::move(name), shape, from, to);
}

}  // namespace lockstep
