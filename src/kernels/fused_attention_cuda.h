// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention with 16-bit activations on a GPU's tensor cores, without a probability matrix in memory (Dao et
// al. 2022, FlashAttention; Dao 2023, FlashAttention-2). Private to this room; kernels/attention.h documents
// the arguments.
//
// A block of four or eight warps handles 64 or 128 queries (or, for the gradients of keys and values, keys)
// of one head, 16 or 32 per warp. It loops over the other side tile by tile, in order; the next tile is
// copied while this one is used. Forward keeps a running maximum and sum per row and rescales the previous
// sums when the maximum grows. It stores log2(sum of exp(score)) per query. Backward recomputes the
// probabilities from it: once for dq, once for dk and dv. No two blocks add to the same number, so the shape
// of a sample fixes the order of all sums. Tiles that a mask leaves empty are skipped, and tiles that no mask
// touches are not masked.
//
// Products are summed in float32 on the tensor cores. A row's sum of exponentials adds at most 16 terms in
// float32 and the rest in double.
#pragma once

#include "kernels/attention.h"

namespace lockstep::cuda {

/// The largest head size that these kernels support.
inline constexpr std::int64_t kMostFusedHeadSize = 128;

/// Bytes of the stored logarithms: a float32 per query and head.
std::size_t fused_attention_statistics_bytes(const AttentionShape& shape);
/// Bytes of scratch that backward needs. `kept`: the caller passes the stored logarithms.
std::size_t fused_attention_scratch_bytes(const AttentionShape& shape, bool kept);

/// y null: computes the logarithms only. `logarithms` null: computes y only.
void fused_attention_forward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                             const AttentionDropout& dropout, float* logarithms, Data y);
void fused_attention_backward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                              const AttentionDropout& dropout, const float* logarithms, ConstData y,
                              ConstData dy, const AttentionGradients& gradients);

}  // namespace lockstep::cuda
