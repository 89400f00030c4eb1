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
// sums when the maximum grows. It stores log(sum of exp(score)) per query, as cuDNN's attention does
// (planned_attention_cuda.h). Backward recomputes the probabilities from it, as powers of two: once for dq,
// once for dk and dv. No two blocks add to the same number, so the shape
// of a sample fixes the order of all sums. Tiles that a mask leaves empty are skipped, and tiles that no mask
// touches are not masked.
//
// Products are summed in float32 on the tensor cores. A row's sum of exponentials adds at most 16 terms in
// float32 and the rest in double.
//
// Why seven products in the backward pass, where FlashAttention's one kernel computes five and adds to dq
// from several blocks: with a fixed order of sums, that kernel has two ways. It can write a float32 partial
// sum of dq per block of 128 keys: 8 bytes per element of dq and block take 2.4 ps at 3.35 TB/s (H100) and 4
// ps at 2 TB/s (A100). The two products that this saves, 4 x 128 operations, take 1.3 and 2.6 ps at 400 and
// 200 TFLOPS, and the partial sums grow with the square of the length. Or blocks add to dq in turn; then one
// that waits for a block without a place on the GPU waits forever. This is arithmetic; nothing was measured.
//
// Why a warp has 32 rows where registers allow: an ldmatrix of four matrices takes 4 clocks of shared memory.
// With 16 rows that is 2 clocks per mma.sync, as long as an A100's tensor cores need for it, and longer than
// an H100's do; with 32 rows it is 1. Gradients of keys and values have two sums per row, so heads of 64 and
// more leave registers for 16 rows. bench/gpu/attention_instructions.py counts both.
#pragma once

#include "kernels/attention.h"

namespace lockstep::cuda {

/// The largest head size that these kernels support.
inline constexpr std::int64_t kMostFusedHeadSize = 128;

/// Bytes of the stored natural logarithms: a float32 per query and head.
std::size_t fused_attention_statistics_bytes(const AttentionShape& shape);
/// Bytes of scratch that backward needs.
std::size_t fused_attention_scratch_bytes(const AttentionShape& shape);

/// `logarithms` null: computes y only.
void fused_attention_forward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                             const AttentionDropout& dropout, float* logarithms, Data y);
void fused_attention_backward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                              const AttentionDropout& dropout, const float* logarithms, ConstData y,
                              ConstData dy, const AttentionGradients& gradients);

}  // namespace lockstep::cuda
