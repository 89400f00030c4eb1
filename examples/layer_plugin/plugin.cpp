// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A plugin with a layer that learns, and a function for inputs that has no backward pass:
//
//   plugins: [build/libswish.so]
//   model: {layers: [log1p, dense: {units: 64}, swish, dense: {units: 10}]}
#include "session/plugin.h"
#include "swish.h"

namespace {

/// y = log(1 + max(x, 0)): for counts, as pixels that were summed up.
void log1p_of(const lockstep::FunctionCall& call) {
  const std::int64_t count = call.n * call.input_shapes[0].num_elements();
  for (std::int64_t i = 0; i < count; ++i) call.outputs[0][i] = std::log1p(std::max(call.inputs[0][i], 0.0F));
}

std::vector<lockstep::Shape> same_shape(std::span<const lockstep::Shape> inputs) {
  LOCKSTEP_REQUIRE(inputs.size() == 1, lockstep::ErrorKind::config, "log1p takes one input, not {}",
                   inputs.size());
  return {inputs[0]};
}

}  // namespace

LOCKSTEP_PLUGIN {
  lockstep::register_layer(example::kSwish);
  lockstep::register_function("log1p", same_shape, log1p_of, "log(1 + max(x, 0)), forward only");
}
