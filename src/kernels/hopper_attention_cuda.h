// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of fused_attention_cuda.h for Hopper GPUs, with products of warpgroups
// (cuda_warpgroup.h). Private to this room. Numbers are divided among sums as in fused_attention_cuda.h: one
// kernel for dq, one for dk and dv, seven products, and no two blocks add to the same number.
//
// A block of two warpgroups has 128 rows of one head, 64 per warpgroup, and loops over tiles of 64 rows of
// the other side. A tile's products are started before the products with the previous tile's probabilities,
// so the tensor cores have work while the threads compute powers of two. Four buffers hold the previous tile,
// this one, and the next two, which are being copied.
#pragma once

#include "kernels/attention.h"

namespace lockstep::cuda {

/// The fewest queries and keys for which these kernels are used, and the largest head. Heads of up to
/// kSmallHeadSize are faster by the kernels for any GPU: 130 against 103 TFLOP/s with heads of 32, causal,
/// 1,024 steps, measured on an H100 (141 against 168 with heads of 64).
inline constexpr std::int64_t kLeastHopperSteps = 64, kSmallHeadSize = 32, kMostHopperHeadSize = 64;

/// True if these kernels compute the backward pass on the current device. Depends alone on the shape, the
/// type, the device, and LOCKSTEP_ATTENTION in the environment, which "own" turns them off.
bool is_hopper_attention(const AttentionShape& shape, DType type);

/// As fused_attention_backward, after its statistics kernel: logarithms are to base 2.
void hopper_attention_gradients(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                                const float* logarithms, const float* delta, ConstData dy,
                                const AttentionGradients& gradients);

}  // namespace lockstep::cuda
