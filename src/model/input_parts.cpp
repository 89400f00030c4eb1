// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/input_parts.h"

#include "model/moves.h"

namespace lockstep {

namespace {

class InputParts final : public MoveLayer {
 public:
  explicit InputParts(std::vector<NamedShape> inputs)
      : MoveLayer("inputs", "inputs"), inputs_(std::move(inputs)) {}

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_CHECK(inputs.size() == 1 && inputs[0] == joined_shape(inputs_));
    std::vector<Shape> rows, outputs;
    for (const NamedShape& input : inputs_) {
      rows.push_back({input.shape.num_elements()});
      outputs.push_back(input.shape);
    }
    parts_.set(inputs[0], 0, rows);
    return outputs;
  }
  void forward(const Pass& pass) override {
    for (std::size_t i = 0; i < parts_.count(); ++i) parts_.cut(pass, i, pass.inputs[0], pass.outputs[i]);
  }
  void backward(const Pass& pass) override {
    LOCKSTEP_CHECK(pass.dx[0] == nullptr, "samples have no gradient");
  }

 private:
  std::vector<NamedShape> inputs_;
  AxisParts parts_;
};

}  // namespace

std::unique_ptr<Layer> make_input_parts(std::vector<NamedShape> inputs) {
  return std::make_unique<InputParts>(std::move(inputs));
}

}  // namespace lockstep
