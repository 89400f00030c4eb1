// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention by heads (Vaswani et al. 2017, section 3.2):
//   y = softmax(q k^T / sqrt(head_size)) v,
// with the softmax over the keys that a query may attend to. A query without any such key has zero
// probabilities and zero output. Masked keys are skipped or have probability zero. The shape fixes the order
// of all sums; on the CPU the bits are the same at every instruction-set level. This header uses plain types
// only (isa.h).
//
// The activations of one call (q, k, v, y and their gradients) have one type of core/data.h; lengths are
// float32. Scores, the softmax and all sums are float32 or double. Two values are rounded in addition to the
// stored results:
// - On the CPU, forward rounds the probabilities that it keeps to the activation type. They make up most of
//   the kept memory and lie in [0, 1]; rounding them moves a gradient about as much as rounding v or dy does.
//   If none are kept, backward rounds the recomputed probabilities the same way, so both paths return the
//   same bits. y is computed from the probabilities before rounding.
// - On a GPU with 16-bit activations, the operands of the tensor cores are rounded: the probabilities after
//   dropout, and the gradient of the scores. Neither is stored; forward keeps one number per query
//   (fused_attention_cuda.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

// The functions below are always inlined, so no file of one instruction-set level emits them (isa.h).

namespace lockstep {

struct AttentionShape {
  std::int64_t n = 0, heads = 0, head_size = 0, queries = 0, keys = 0;
  bool causal = false;   ///< query i attends to keys 0 .. i; queries == keys
  bool self = true;      ///< queries and keys share their positions: queries past a length attend to nothing
  bool dropout = false;  ///< apply dropout to the probabilities
  bool lengths = false;  ///< AttentionInputs::lengths is given
  /// Numbers from one position to the next of q, and of k and v (AttentionInputs).
  std::int64_t query_stride = 0, key_stride = 0;

  /// Elements in one row of the probability matrix in memory: keys, rounded up to a multiple of 16.
  [[gnu::always_inline]] constexpr std::int64_t row() const { return (keys + 15) / 16 * 16; }
  /// Elements of all probabilities: n x heads x queries x row().
  [[gnu::always_inline]] constexpr std::int64_t probabilities() const { return n * heads * queries * row(); }
};

/// Input addresses. Head h of position t of sample s is the head_size numbers at q + (s * queries + t) *
/// query_stride + h * head_size; k and v use the same form with key_stride. On a GPU, 16-bit activations
/// whose head_size and strides are multiples of 8 are 16-byte aligned.
struct AttentionInputs {
  ConstData q, k, v;
  const float* lengths = nullptr;  ///< n numbers: valid keys per sample, clamped to 0 .. keys; null: all keys
};

/// Inverted dropout of the probabilities. The mask is that of ElementwiseKernels::dropout with the purpose
/// `purpose` + head and element query * row() + key of the sample.
struct AttentionDropout {
  float rate = 0;
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0, step = 0, first_sample = 0;
};

/// Gradients, laid out like the inputs. All are overwritten.
struct AttentionGradients {
  Data q, k, v;
};

/// Heads with more probabilities than this recompute them in the backward pass instead of keeping them.
constexpr std::int64_t kMostKeptProbabilities = 512 * 512;

class AttentionKernels {
 public:
  virtual ~AttentionKernels();

  /// Bytes that forward keeps for backward with activations of `type`. 0: `kept` must be null.
  virtual std::size_t kept_bytes(const AttentionShape& shape, DType type) const = 0;
  /// Bytes of lane scratch that forward and backward need. `kept`: the caller provides kept_bytes() of
  /// memory.
  virtual std::size_t scratch_bytes(const AttentionShape& shape, DType type, bool kept,
                                    bool training) const = 0;
  /// y = the concatenated head outputs: n x queries x (heads * head_size). `kept` (64-byte aligned,
  /// kept_bytes()) receives data for backward; null: nothing is kept.
  virtual void forward(const Lane&, const AttentionShape& shape, const AttentionInputs& inputs,
                       const AttentionDropout& dropout, void* kept, Data y) const = 0;
  /// y is forward's output; dy is laid out like y. `kept` is forward's; null: backward recomputes everything,
  /// except with 16-bit activations on a GPU, which need what kept_bytes() announces.
  virtual void backward(const Lane&, const AttentionShape& shape, const AttentionInputs& inputs,
                        const AttentionDropout& dropout, const void* kept, ConstData y, ConstData dy,
                        const AttentionGradients& gradients) const = 0;
  /// Sets the rows of x (n x steps x width) past each sample's length to zero.
  virtual void zero_past(const Lane&, std::int64_t n, std::int64_t steps, std::int64_t width,
                         const float* lengths, Data x) const = 0;
};

/// Converts a length stored as float32 and clamps it to 0 .. most. NaN counts as 0.
[[gnu::always_inline]] constexpr std::int64_t length_of(float length, std::int64_t most) {
  if (!(length > 0.0F)) return 0;
  return length >= static_cast<float>(most) ? most : static_cast<std::int64_t>(length);
}

/// The number of keys that query i may attend to; they are keys 0 to this number - 1.
[[gnu::always_inline]] constexpr std::int64_t attended(const AttentionShape& shape, std::int64_t length,
                                                       std::int64_t i) {
  if (shape.self && i >= length) return 0;
  return shape.causal && i + 1 < length ? i + 1 : length;
}

}  // namespace lockstep
