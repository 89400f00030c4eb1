// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/planned_attention_cuda.h"

#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "kernels/cuda_launch.h"
#include "kernels/fused_attention_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr std::size_t kWorkspaceAlignment = 256;

bool is_wanted(AttentionPass pass) {
  const char* wanted = std::getenv("LOCKSTEP_ATTENTION");
  if (wanted == nullptr) return pass == AttentionPass::forward;
  return std::string_view(wanted) == "cudnn";
}

/// The lane's scratch of a pass: cuDNN's workspace, and one float32 per query, the statistics or delta.
struct PlanScratch {
  PlanScratch(const AttentionPlan& plan, const Lane& lane, const AttentionShape& shape) {
    LOCKSTEP_CHECK(lane.scratch_bytes >= planned_attention_scratch_bytes(plan, shape),
                   "attention has {} bytes of scratch and needs {}", lane.scratch_bytes,
                   planned_attention_scratch_bytes(plan, shape));
    const auto address = reinterpret_cast<std::uintptr_t>(lane.scratch);
    char* first = static_cast<char*>(lane.scratch) +
                  (kWorkspaceAlignment - address % kWorkspaceAlignment) % kWorkspaceAlignment;
    rows = first;
    workspace = first + rows_bytes(shape);
  }
  static std::size_t rows_bytes(const AttentionShape& shape) {
    return (fused_attention_statistics_bytes(shape) + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
           kWorkspaceAlignment;
  }
  void *rows = nullptr, *workspace = nullptr;
};

}  // namespace

bool is_attention_planned(const AttentionShape& shape, DType type, AttentionPass pass) {
  return is_wanted(pass) && (type == DType::bf16 || type == DType::f16) && !shape.dropout && !shape.lengths &&
         shape.head_size <= kMostFusedHeadSize && shape.head_size % 8 == 0 && shape.query_stride % 8 == 0 &&
         shape.key_stride % 8 == 0 && shape.queries >= kLeastPlannedSteps && shape.keys >= kLeastPlannedSteps;
}

std::shared_ptr<const AttentionPlan> attention_plan(const AttentionShape& shape, DType type,
                                                    AttentionPass pass) {
  if (!is_attention_planned(shape, type, pass)) return nullptr;
  return attention_plan_for({.pass = pass,
                             .n = shape.n,
                             .heads = shape.heads,
                             .head_size = shape.head_size,
                             .queries = shape.queries,
                             .keys = shape.keys,
                             .query_stride = shape.query_stride,
                             .key_stride = shape.key_stride,
                             .causal = shape.causal,
                             .type = type});
}

std::size_t planned_attention_scratch_bytes(const AttentionPlan& plan, const AttentionShape& shape) {
  return kWorkspaceAlignment + PlanScratch::rows_bytes(shape) + plan.workspace_bytes();
}

void planned_attention_forward(const AttentionPlan& plan, const Lane& lane, const AttentionShape& shape,
                               const AttentionInputs& inputs, void* statistics, Data y) {
  const PlanScratch scratch(plan, lane, shape);
  plan.run(stream_of(lane),
           {.q = inputs.q.address(),
            .k = inputs.k.address(),
            .v = inputs.v.address(),
            .y = y.address(),
            .statistics = statistics != nullptr ? statistics : scratch.rows},
           scratch.workspace);
}

void planned_attention_backward(const AttentionPlan& plan, const Lane& lane, const AttentionShape& shape,
                                const AttentionInputs& inputs, const void* statistics, ConstData y,
                                ConstData dy, const AttentionGradients& gradients) {
  const PlanScratch scratch(plan, lane, shape);
  plan.run(stream_of(lane),
           {.q = inputs.q.address(),
            .k = inputs.k.address(),
            .v = inputs.v.address(),
            .y = y.address(),
            .statistics = statistics,
            .dy = dy.address(),
            .dq = gradients.q.address(),
            .dk = gradients.k.address(),
            .dv = gradients.v.address(),
            .delta = scratch.rows},
           scratch.workspace);
}

}  // namespace lockstep::cuda
