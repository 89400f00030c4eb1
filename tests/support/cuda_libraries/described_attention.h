// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention plans of the real cuDNN for the described GPU (described_gpu.h), and the graphs that cuDNN
// reports. cuDNN compiles an engine's kernel while it makes the plan, and loads it with the driver, for which
// described_driver.cpp stands in.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "described_gpu.h"
#include "kernels/cudnn_attention_cuda.h"

namespace lockstep {

/// A tensor of a graph: samples, heads, rows, columns. Strides are in elements.
struct GraphTensor {
  std::int64_t id = 0;
  std::string type;  ///< without "CUDNN_DATA_"
  std::array<std::int64_t, 4> extents{}, strides{};
  bool is_virtual = false;  ///< exists between operations alone
};
/// An operation. Inputs that it does not have are 0.
struct GraphNode {
  std::string kind;  ///< "MATMUL", "RESHAPE", or the mode of a pointwise operation or a reduction
  std::int64_t a = 0, b = 0, t = 0, to = 0;
  int axis = -1;
};
struct AttentionFacts : EngineFacts {
  std::string recognised;  ///< what cuDNN takes the graph for
  std::vector<GraphTensor> tensors;
  std::vector<GraphNode> nodes;
  std::string kernel;  ///< name of the compiled kernel
};

/// The plan that the program would use on an H200. Throws as cuda::find_attention_plan does.
AttentionFacts plan_on_described_gpu(const cuda::AttentionPlanSpec& spec);

/// What the program's variant pack of an execution holds, by identifier.
struct AttentionExecution {
  std::map<std::int64_t, void*> memory;
  std::map<std::int64_t, double> scalars;
};
AttentionExecution execution_of(const cuda::AttentionPlanSpec& spec, const cuda::AttentionOperands& operands);

}  // namespace lockstep
