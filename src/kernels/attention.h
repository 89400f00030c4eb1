// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention by heads (Vaswani et al. 2017, section 3.2): probabilities
// softmax(q k^T / sqrt(head_size)) over the keys that a query may attend to, times v. A query that may attend
// to nothing has probabilities of zero, hence an output of zero; what it may not attend to is never computed
// with, or has the probability zero. Sums run in one order per element that the shape fixes: on the CPU every
// instruction-set level gives the same bits. Plain types only (compiled for several instruction sets).
//
// Activations of one call (q, k, v, y and their gradients) lie in memory in one type of core/data.h; lengths
// are float32. Scores, the softmax and all sums are float32 or double. Besides what is stored, rounded are:
// - On the CPU the probabilities that forward keeps, to the activations' type. They are most of what is
//   kept, lie in [0, 1], and their one rounding moves a gradient as much as that of v or dy does. Where none
//   are kept, backward rounds those that it computes again alike: both ways give the same bits. y comes from
//   probabilities before their rounding.
// - On a GPU with 16-bit activations the operands of the tensor cores: probabilities after dropout, and the
//   gradient of the scores. Neither is in memory; a number per query is kept (fused_attention_cuda.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

// The functions below are always inlined, hence never emitted by a file of one instruction-set level (isa.h).

namespace lockstep {

struct AttentionShape {
  std::int64_t n = 0, heads = 0, head_size = 0, queries = 0, keys = 0;
  bool causal = false;   ///< query i attends to keys 0 .. i; queries == keys
  bool self = true;      ///< queries are the keys' own positions: those past a length attend to nothing
  bool dropout = false;  ///< probabilities are dropped out

  /// Numbers of a row of probabilities in memory.
  [[gnu::always_inline]] constexpr std::int64_t row() const { return (keys + 15) / 16 * 16; }
  /// Numbers of all probabilities: n x heads x queries x row().
  [[gnu::always_inline]] constexpr std::int64_t probabilities() const { return n * heads * queries * row(); }
};

/// Where the numbers lie. Head h of position t of sample s is head_size numbers at
/// q + (s * queries + t) * query_stride + h * head_size, k and v alike with key_stride.
struct AttentionInputs {
  ConstData q, k, v;
  std::int64_t query_stride = 0, key_stride = 0;
  const float* lengths = nullptr;  ///< n numbers: keys that count, limited to 0 .. keys; null: all
};

/// Inverted dropout of the probabilities: ElementwiseKernels::dropout with the purpose `purpose` + head,
/// element query * row() + key of the sample.
struct AttentionDropout {
  float rate = 0;
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0, step = 0, first_sample = 0;
};

/// Gradients, laid out like the inputs; all of them are overwritten.
struct AttentionGradients {
  Data q, k, v;
};

/// Probabilities of a head that are kept for the backward pass, at most; more are computed again.
constexpr std::int64_t kMostKeptProbabilities = 512 * 512;

class AttentionKernels {
 public:
  virtual ~AttentionKernels();

  /// Bytes that forward can leave for backward with activations of `type`; 0: `kept` must be null.
  virtual std::size_t kept_bytes(const AttentionShape& shape, DType type) const = 0;
  /// Bytes of the lane's scratch that forward and backward need. `kept`: memory for kept_bytes() is given.
  virtual std::size_t scratch_bytes(const AttentionShape& shape, DType type, bool kept,
                                    bool training) const = 0;
  /// y = the heads' outputs side by side: n x queries x (heads * head_size). `kept` (64-byte aligned,
  /// kept_bytes()) gets what backward can use, unless it is null.
  virtual void forward(const Lane&, const AttentionShape& shape, const AttentionInputs& inputs,
                       const AttentionDropout& dropout, void* kept, Data y) const = 0;
  /// y is forward's, and dy is laid out like it. `kept` is forward's; null: all is computed again.
  virtual void backward(const Lane&, const AttentionShape& shape, const AttentionInputs& inputs,
                        const AttentionDropout& dropout, const void* kept, ConstData y, ConstData dy,
                        const AttentionGradients& gradients) const = 0;
  /// x (n x steps x width) = 0 in the rows past each sample's length.
  virtual void zero_past(const Lane&, std::int64_t n, std::int64_t steps, std::int64_t width,
                         const float* lengths, Data x) const = 0;
};

/// A length kept as a float32, within 0 .. most.
[[gnu::always_inline]] constexpr std::int64_t length_of(float length, std::int64_t most) {
  if (!(length > 0.0F)) return 0;  // NaN, too
  return length >= static_cast<float>(most) ? most : static_cast<std::int64_t>(length);
}

/// Keys that query i may attend to: those before this one.
[[gnu::always_inline]] constexpr std::int64_t attended(const AttentionShape& shape, std::int64_t length,
                                                       std::int64_t i) {
  if (shape.self && i >= length) return 0;
  return shape.causal && i + 1 < length ? i + 1 : length;
}

}  // namespace lockstep
