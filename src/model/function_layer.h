// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer made of two C++ functions, without a backward pass: for arithmetic on the inputs before the first
// layer that learns, or after a stop_gradient.
//
//   register_function("log1p", same_shape, [](const FunctionCall& call) { ... });
//
//   layers: [log1p, dense: {units: 10}]
//
// A model in which a gradient would have to pass through the layer is rejected when it is built. So is one on
// a GPU: the function computes in host memory.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/layer_table.h"

namespace lockstep {

/// One microshard: n samples (> 0) of each input, from which n samples of each output are computed.
struct FunctionCall {
  std::int64_t n;
  std::span<const Shape> input_shapes, output_shapes;  ///< per sample, channels last
  const ConstData* inputs;                             ///< float32: `const float* x = call.inputs[0]`
  const Data* outputs;
};

/// Returns the shapes of the outputs from those of the inputs. Throws Error(config) that says what does not
/// fit; the graph adds the layer's position.
using InferFunction = std::function<std::vector<Shape>(std::span<const Shape> inputs)>;
/// Computes the outputs. Several threads call it at the same time, for one microshard each, so the result
/// must depend on the inputs alone.
using ForwardFunction = std::function<void(const FunctionCall& call)>;

struct LayerFunction {
  std::string name, help;
  InferFunction infer;
  ForwardFunction forward;
};

/// Adds a layer of this name, which has no options of its own. Throws Error(config) if the name is taken.
void register_function(std::string name, InferFunction infer, ForwardFunction forward, std::string help = {});

std::unique_ptr<Layer> make_function_layer(std::string name, const LayerFunction& function);

}  // namespace lockstep
