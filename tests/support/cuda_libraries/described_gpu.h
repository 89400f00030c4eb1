// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans of the real cuDNN for a GPU that is not present (cuDNN 9.8 and later: "deviceless" planning). The
// test describes an H200 to cuDNN, and the program's own code (kernels/cudnn_plan_cuda.h) requests engines
// and plans. No driver is needed, and nothing can be executed. Loading an engine's kernels, which a real card
// does when a plan is created, is not covered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/function_ref.h"
#include "kernels/cudnn_cuda.h"

namespace lockstep {

/// An operand as cuDNN reports it. The kernel is out x in/groups x space. Axes are in the order depth,
/// height, width; strides are in elements.
struct PlannedOperand {
  DType type = DType::f32;
  std::int64_t n = 0, c = 0, n_stride = 0, c_stride = 0;
  cuda::PlanSpec::Axes space{1, 1, 1}, space_strides{0, 0, 0};
};
/// An operation as cuDNN reports it.
struct PlannedOperation {
  cuda::PlanSpec::Pass pass = cuda::PlanSpec::Pass::forward;
  PlannedOperand x, kernel, y;
  cuda::PlanSpec::Axes padding{0, 0, 0}, padding_after{0, 0, 0}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::int64_t groups = 1;
};

struct EngineFacts {
  std::size_t workspace_bytes = 0;
  bool on_tensor_cores = false;
  std::int64_t engine = 0;                      ///< cuDNN's engine number, per kind of operation
  std::string numerical_notes, behavior_notes;  ///< cuDNN's names without their common prefix
};
struct PlanFacts : EngineFacts {
  PlanFacts(PlannedOperation planned, EngineFacts facts)
      : EngineFacts(std::move(facts)), operation(std::move(planned)) {}
  PlannedOperation operation;
};

/// The plan that the program would use on an H200: the first one that `is_right` accepts. Throws as
/// cuda::find_plan does, and Error(bug) if the operands' identifiers are not those of a variant pack.
PlanFacts plan_on_described_gpu(const cuda::PlanSpec& spec, FunctionRef<bool(const PlanFacts&)> is_right);
PlanFacts plan_on_described_gpu(const cuda::PlanSpec& spec);
/// The descriptions of all plans of an H200 that the program could use, in cuDNN's order.
std::vector<std::string> plan_names(const cuda::PlanSpec& spec);

}  // namespace lockstep
