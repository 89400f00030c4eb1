// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention with 16-bit activations on a GPU's tensor cores, without a matrix of probabilities in memory (Dao
// et al. 2022, FlashAttention; Dao 2023, FlashAttention-2). Private to this room; kernels/attention.h says
// what the arguments mean.
//
// A block of four warps has 64 queries (or, for the gradients of keys and values, 64 keys) of one head, each
// warp 16 of them, and goes through the others tile by tile, in order. Forward keeps a running maximum and
// sum of each row; what it had is scaled down where the maximum grows. It leaves log(sum of exp(score)) per
// query, from which backward computes probabilities again: once for dq, once for dk and dv, so no two blocks
// add to the same number and the order of all sums is that of the shape. Tiles that a mask leaves empty are
// skipped.
//
// Products add in float32 on the tensor cores. A row's sum of exponentials: at most 16 in float32, the rest
// in double.
#pragma once

#include "kernels/attention.h"

namespace lockstep::cuda {

/// Head sizes beyond it are not done here.
inline constexpr std::int64_t kMostFusedHeadSize = 128;

/// Bytes of the logarithms: a float32 per query and head.
std::size_t fused_attention_statistics_bytes(const AttentionShape& shape);
/// Bytes of scratch that backward needs. `kept`: it is given the logarithms.
std::size_t fused_attention_scratch_bytes(const AttentionShape& shape, bool kept);

/// y null: the logarithms alone; `logarithms` null: y alone.
void fused_attention_forward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                             const AttentionDropout& dropout, float* logarithms, Data y);
void fused_attention_backward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                              const AttentionDropout& dropout, const float* logarithms, ConstData y,
                              ConstData dy, const AttentionGradients& gradients);

}  // namespace lockstep::cuda
