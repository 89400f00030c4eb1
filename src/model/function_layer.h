// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer made of two C++ functions, forward only: for inputs that need arithmetic of one's own before the
// first layer that learns, or behind a stop_gradient.
//
//   register_function("log1p", same_shape, [](const FunctionCall& call) { ... });
//
//   layers: [log1p, dense: {units: 10}]
//
// It has no backward pass: where a gradient would have to go through it, the model is refused when it is
// made. It computes in host memory: on a GPU it is refused too.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/layer_table.h"

namespace lockstep {

/// One microshard: n samples (> 0) of each input, to be turned into n samples of each output.
struct FunctionCall {
  std::int64_t n;
  std::span<const Shape> input_shapes, output_shapes;  ///< per sample, channels last
  const ConstData* inputs;                             ///< float32: `const float* x = call.inputs[0]`
  const Data* outputs;
};

/// Shapes of the outputs from those of the inputs. Throws Error(config) that says what does not fit; the
/// graph adds the layer's place.
using InferFunction = std::function<std::vector<Shape>(std::span<const Shape> inputs)>;
/// Called by several threads at once, for one microshard each: the result depends on the inputs alone.
using ForwardFunction = std::function<void(const FunctionCall& call)>;

struct LayerFunction {
  std::string name, help;
  InferFunction infer;
  ForwardFunction forward;
};

/// Adds a layer with this name, without options of its own. Throws Error(config) if the name is taken.
void register_function(std::string name, InferFunction infer, ForwardFunction forward, std::string help = {});

std::unique_ptr<Layer> make_function_layer(std::string name, const LayerFunction& function);

}  // namespace lockstep
