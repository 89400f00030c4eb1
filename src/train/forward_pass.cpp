// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/forward_pass.h"

#include <algorithm>

namespace lockstep {

namespace {

Lane lane_with(int index, const Buffer& scratch) {
  return {.index = index, .scratch = scratch.data(), .scratch_bytes = scratch.size_bytes()};
}

std::size_t scratch_of(const Graph::Calls& calls) {
  std::size_t bytes = cpu_kernels().scratch_bytes;
  for (const Graph::Operation& operation : calls.operations)
    bytes = std::max(bytes, operation.memory.scratch_bytes);
  return bytes;
}

}  // namespace

PreparedNet::PreparedNet(const Parts& parts, std::span<const std::int64_t> sizes, int lanes)
    : parts_(parts),
      calls_(parts.graph.prepare({.kernels = cpu_kernels(),
                                  .device = cpu_device(),
                                  .lanes = lanes,
                                  .training = false,
                                  .sample_counts = sizes,
                                  .wants_input_gradient = {},
                                  .shards = parts.shards})),
      memory_(calls_, false, *std::ranges::max_element(sizes)),
      scratch_bytes_(scratch_of(calls_)) {
  const Buffer scratch(cpu_device(), scratch_bytes_);
  const Lane lane = lane_with(0, scratch);
  for (const Graph::Operation& operation : calls_.operations)
    operation.layer->refresh_weights(cpu_kernels(), lane, parts_.variables, false);
}

ForwardPass::ForwardPass(const PreparedNet& net, int lane)
    : net_(net),
      kernels_(cpu_kernels()),
      scratch_(cpu_device(), net.scratch_bytes()),
      lane_(lane_with(lane, scratch_)),
      slot_(lane, cpu_device(), net.calls(), net.memory()) {
  passes_.reserve(slot_.calls.size());
  for (const MicroshardSlot::Call& call : slot_.calls)
    passes_.push_back({.kernels = kernels_,
                       .lane = lane_,
                       .variables = net.parts().variables,
                       .training = false,
                       .n = 0,
                       .shard = 0,
                       .seed = net.parts().seed,
                       .step = 0,
                       .first_sample = 0,
                       .inputs = call.inputs.data(),
                       .outputs = call.outputs.data(),
                       .saved = call.saved,
                       .dy = call.dy.data(),
                       .dy2 = call.dy2.data(),
                       .dx = call.dx.data(),
                       .gradients = nullptr,
                       .gradient_base = 0});
}

void ForwardPass::run(std::int64_t n) {
  const std::vector<Graph::Operation>& operations = net_.calls().operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    passes_[i].n = n;
    operations[i].layer->forward(passes_[i]);
  }
}

void ForwardPass::predict(int head, std::int64_t n, float* rows) const {
  const Head& of = net_.parts().heads[head];
  of.loss->predict(kernels_, cpu_device(), lane_, n, of.shape, outputs(head), rows);
}

}  // namespace lockstep
