// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// 16-bit attention by cuDNN's plans (cudnn_attention_cuda.h): for which shapes and passes, and the calls.
// Own kernels (fused_attention_cuda.h) keep the same statistics, so each pass may be computed either way.
#pragma once

#include "kernels/cudnn_attention_cuda.h"

namespace lockstep::cuda {

using AttentionPass = AttentionPlanSpec::Pass;

/// The fewest queries and keys for which cuDNN is asked: the rows of a tile of its kernels.
inline constexpr std::int64_t kLeastPlannedSteps = 128;

/// True if cuDNN is asked for this pass: forward. Depends alone on the shape, the type and LOCKSTEP_ATTENTION
/// in the environment: with "cudnn" both passes, with another value none.
bool is_attention_planned(const AttentionShape& shape, DType type, AttentionPass pass);

/// The plan; null: own kernels compute the pass.
std::shared_ptr<const AttentionPlan> attention_plan(const AttentionShape& shape, DType type,
                                                    AttentionPass pass);

/// Bytes of lane scratch of a pass.
std::size_t planned_attention_scratch_bytes(const AttentionPlan& plan, const AttentionShape& shape);

/// As AttentionKernels::forward. `statistics` may be null.
void planned_attention_forward(const AttentionPlan& plan, const Lane& lane, const AttentionShape& shape,
                               const AttentionInputs& inputs, void* statistics, Data y);
/// As AttentionKernels::backward.
void planned_attention_backward(const AttentionPlan& plan, const Lane& lane, const AttentionShape& shape,
                                const AttentionInputs& inputs, const void* statistics, ConstData y,
                                ConstData dy, const AttentionGradients& gradients);

}  // namespace lockstep::cuda
