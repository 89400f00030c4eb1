// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Causal self-attention of GPT-2 at batch 8, without its projections. Counted operations: two products in the
// forward pass, five in the backward pass (one recomputes the scores), each halved by the causal mask.
#include <fmt/format.h>

#include "core/error.h"
#include "gpu/rate_bench.h"

namespace lockstep {

void attention_rates(RateBench& bench, DType type) {
  AttentionShape shape{.n = 8, .heads = 12, .head_size = 64, .queries = 1024, .keys = 1024, .causal = true};
  if (bench.tiny()) shape = {.n = 1, .heads = 2, .head_size = 16, .queries = 20, .keys = 20, .causal = true};
  const std::int64_t width = shape.heads * shape.head_size, rows = shape.n * shape.queries;
  const std::string name =
      fmt::format("{}, {} heads of {}, {} steps", shape.n, shape.heads, shape.head_size, shape.queries);
  try {
    const AttentionKernels& attention = bench.kernels().attention;
    const Buffer kept(bench.device(), attention.kept_bytes(shape, type));
    bench.grow_scratch(attention.scratch_bytes(shape, type, kept.data() != nullptr, true));
    const Buffer qkv_memory = bench.filled(rows * 3 * width, type),
                 gradient_memory = bench.filled(rows * 3 * width, type),
                 y_memory = bench.filled(rows * width, type), dy_memory = bench.filled(rows * width, type);
    const Data qkv(qkv_memory.data(), type), gradient(gradient_memory.data(), type), y(y_memory.data(), type),
        dy(dy_memory.data(), type);
    const AttentionInputs inputs{.q = qkv,
                                 .k = qkv.offset(width),
                                 .v = qkv.offset(2 * width),
                                 .query_stride = 3 * width,
                                 .key_stride = 3 * width};
    const double product = static_cast<double>(rows) * static_cast<double>(shape.keys * width);  // 2 / 2
    bench.flops("attention forward", name, {type}, 2 * product,
                [&](const Lane& lane) { attention.forward(lane, shape, inputs, {}, kept.data(), y); });
    bench.flops("attention backward", name, {type}, 5 * product, [&](const Lane& lane) {
      attention.backward(lane, shape, inputs, {}, kept.data(), y, dy,
                         {gradient, gradient.offset(width), gradient.offset(2 * width)});
    });
  } catch (const Error& error) {  // out of memory: further cases may still fit
    bench.problem("attention", name, name_of(type), error.what());
  }
}

}  // namespace lockstep
