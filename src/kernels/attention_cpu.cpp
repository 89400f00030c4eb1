// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention on the CPU, per instruction-set level (isa.h). Each head of a sample is packed into matrices
// whose rows are whole registers, and all its products run while it is in cache. The matrix product below
// adds in float32 in the order of the inner index for any tile size, so tiles may differ between levels
// without a change of bits. Work beyond the causal mask or the length is skipped in blocks of eight rows.
//
// Why an own kernel instead of batched products and a softmax of oneDNN: a causal mask makes half of that
// work useless, and the bits of oneDNN's products depend on the instruction set. It does half of oneDNN's
// operations per second without fused multiply-add. At 128 steps and 4 heads of 32 the forward pass of a
// causal attention takes as long as oneDNN's products with a softmax, and without a mask 1.5 times as long.
// Probabilities are kept for the backward pass up to 512 x 512 per head: recomputing them made the backward
// pass a quarter slower.
#include "kernels/attention.h"

#include "kernels/isa.h"
#include "kernels/vec_math.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

using L = Lanes<Vec>;

constexpr std::int64_t kPad = 16;          ///< row lengths are multiples of it, at every level
constexpr std::int64_t kBlockQueries = 8;  ///< rows that share one mask limit
constexpr int kTileRows = kLanes == 4 ? 2 : kLanes / 2;
constexpr int kTilePieces = kLanes == 4 ? 4 : 2;  ///< adjacent registers per row of a tile
constexpr std::int64_t kTileColumns = kTilePieces * kLanes;

constexpr std::int64_t padded(std::int64_t count) { return (count + kPad - 1) / kPad * kPad; }
constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// Element (i, k) is at[i * row + k * column].
struct Operand {
  const float* at;
  std::int64_t row, column;
};

/// c = a b for kRows rows and kPieces registers of columns, over first <= k < last.
template <int kRows, int kPieces>
inline void tile(const Operand& a, const float* b, std::int64_t b_row, std::int64_t first, std::int64_t last,
                 float* c, std::int64_t c_row) {
  Vec sums[kRows][kPieces] = {};
  for (std::int64_t k = first; k < last; ++k) {
    Vec right[kPieces];
#pragma GCC unroll 4
    for (int p = 0; p < kPieces; ++p) right[p] = L::load(b + k * b_row + p * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec left = Vec{} + a.at[r * a.row + k * a.column];
#pragma GCC unroll 4
      for (int p = 0; p < kPieces; ++p) sums[r][p] += left * right[p];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < kPieces; ++p) L::store(c + r * c_row + p * kLanes, sums[r][p]);
}

template <int kRows>
inline void row_of_tiles(const Operand& a, const float* b, std::int64_t b_row, std::int64_t first,
                         std::int64_t last, std::int64_t columns, float* c, std::int64_t c_row) {
  std::int64_t j = 0;
  for (; j + kTileColumns <= columns; j += kTileColumns)
    tile<kRows, kTilePieces>(a, b + j, b_row, first, last, c + j, c_row);
  for (; j < columns; j += kLanes) tile<kRows, 1>(a, b + j, b_row, first, last, c + j, c_row);
}

/// Limits of a product for a block of kBlockQueries rows: its inner range, and the number of columns (a
/// multiple of kPad).
struct Extent {
  std::int64_t first, last, columns;
};

/// c = a b for `rows` rows. extent_of(i) is the extent of the block that begins with row i. Columns outside
/// the extent are unchanged.
template <typename ExtentOf>
inline void multiply(std::int64_t rows, Operand a, const float* b, std::int64_t b_row, float* c,
                     std::int64_t c_row, const ExtentOf& extent_of) {
  for (std::int64_t begin = 0; begin < rows; begin += kBlockQueries) {
    const Extent e = extent_of(begin);
    const std::int64_t end = least(begin + kBlockQueries, rows);
    std::int64_t i = begin;
    for (; i + kTileRows <= end; i += kTileRows)
      row_of_tiles<kTileRows>({a.at + i * a.row, a.row, a.column}, b, b_row, e.first, e.last, e.columns,
                              c + i * c_row, c_row);
    for (; i < end; ++i)
      row_of_tiles<1>({a.at + i * a.row, a.row, a.column}, b, b_row, e.first, e.last, e.columns,
                      c + i * c_row, c_row);
  }
}

/// to (rows x padded(columns)) = factor * from; padding columns are zero.
template <typename T>
inline void pack(std::int64_t rows, std::int64_t columns, float factor, const T* from, std::int64_t stride,
                 float* to) {
  const std::int64_t width = padded(columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t j = 0;
    for (; j < columns; ++j) to[i * width + j] = factor * to_float(from[i * stride + j]);
    for (; j < width; ++j) to[i * width + j] = 0.0F;
  }
}
/// to (columns x padded(rows)) = the transpose of from; padding columns are zero.
template <typename T>
inline void pack_transposed(std::int64_t rows, std::int64_t columns, const T* from, std::int64_t stride,
                            float* to) {
  const std::int64_t width = padded(rows);
  for (std::int64_t first = 0; first < width; first += kPad)
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = first; i < first + kPad; ++i)
        to[j * width + i] = i < rows ? to_float(from[i * stride + j]) : 0.0F;
}
template <typename T>
inline void unpack(std::int64_t rows, std::int64_t columns, float factor, const float* from, T* to,
                   std::int64_t stride) {
  const std::int64_t width = padded(columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      to[i * stride + j] = from_float<T>(factor * from[i * width + j]);
}

/// to = from in to's type; count is a multiple of kPad.
template <typename From, typename To>
inline void convert(std::int64_t count, const From* from, To* to) {
  for (std::int64_t i = 0; i < count; i += kLanes) L::store(to + i, L::load(from + i));
}

/// The sum over 16 columns.
inline double total(const Vec* columns) {
  float values[kPad];
  for (int k = 0; k < static_cast<int>(kPad) / kLanes; ++k) L::store(values + k * kLanes, columns[k]);
  double sum = 0.0;
  for (float value : values) sum += static_cast<double>(value);
  return sum;
}

/// x[0 .. count) = its softmax, and x[count .. width) = 0. NaN stays NaN: no infinity is subtracted from
/// another.
inline void softmax_row(float* x, std::int64_t count, std::int64_t width) {
  const std::int64_t used = padded(count);
  if (count > 0) {
    for (std::int64_t j = count; j < used; ++j) x[j] = -__builtin_inff();
    float max = x[0];
    Vec best = Vec{} + max;
    for (std::int64_t j = 0; j < used; j += kLanes) {
      const Vec next = L::load(x + j);
      best = next > best ? next : best;
    }
    float columns[kLanes];
    L::store(columns, best);
    for (float column : columns) max = column > max ? column : max;
    Vec sums[kPad / kLanes] = {};
    for (std::int64_t j = 0; j < used; j += kPad)
#pragma GCC unroll 4
      for (int k = 0; k < static_cast<int>(kPad) / kLanes; ++k) {
        const Vec term = exp_of_nonpositive(L::load(x + j + k * kLanes) - max);
        sums[k] += term;
        L::store(x + j + k * kLanes, term);
      }
    const float factor = static_cast<float>(1.0 / total(sums));
    for (std::int64_t j = 0; j < used; ++j) x[j] *= factor;
  }
  for (std::int64_t j = used; j < width; ++j) x[j] = 0.0F;
}

/// dx[0 .. count) = p * (dx - sum of p dx), and dx[count .. width) = 0; p is 0 from count on.
inline void softmax_backward_row(const float* p, float* dx, std::int64_t count, std::int64_t width) {
  const std::int64_t used = padded(count);
  Vec sums[kPad / kLanes] = {};
  for (std::int64_t j = 0; j < used; j += kPad)
#pragma GCC unroll 4
    for (int k = 0; k < static_cast<int>(kPad) / kLanes; ++k)
      sums[k] += L::load(p + j + k * kLanes) * L::load(dx + j + k * kLanes);
  const float mean = static_cast<float>(total(sums));
  for (std::int64_t j = 0; j < used; ++j) dx[j] = p[j] * (dx[j] - mean);
  for (std::int64_t j = used; j < width; ++j) dx[j] = 0.0F;
}

/// One head of one sample.
template <typename T>
class Head {
 public:
  Head(const AttentionShape& shape, const AttentionInputs& inputs, std::int64_t sample, std::int64_t head)
      : shape_(shape),
        inputs_(inputs),
        length_(inputs.lengths == nullptr ? shape.keys : length_of(inputs.lengths[sample], shape.keys)),
        q_(sample * shape.queries * shape.query_stride + head * shape.head_size),
        k_(sample * shape.keys * shape.key_stride + head * shape.head_size),
        factor_(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(shape.head_size)))) {}

  std::int64_t q() const { return q_; }  ///< offset of the head's first number
  std::int64_t k() const { return k_; }
  float factor() const { return factor_; }
  std::int64_t attended(std::int64_t i) const { return lockstep::attended(shape_, length_, i); }
  /// The largest number of keys that a query of the block beginning with `begin` may attend to.
  std::int64_t limit(std::int64_t begin) const {
    std::int64_t most = 0;
    for (std::int64_t i = begin; i < least(begin + kBlockQueries, shape_.queries); ++i)
      if (attended(i) > most) most = attended(i);
    return most;
  }
  /// p = the probabilities, not rounded to T. Scratch: q receives the packed queries, kt the packed
  /// transposed keys.
  void probabilities(float* q, float* kt, float* p) const {
    const std::int64_t row = shape_.row();
    pack_q(q);
    pack_transposed(shape_.keys, shape_.head_size, inputs_.k.template as<T>() + k_, shape_.key_stride, kt);
    multiply(shape_.queries, {q, padded(shape_.head_size), 1}, kt, row, p, row, [&](std::int64_t i) {
      return Extent{0, shape_.head_size, padded(limit(i))};
    });
    for (std::int64_t i = 0; i < shape_.queries; ++i) softmax_row(p + i * row, attended(i), row);
  }
  void pack_q(float* q) const {
    pack(shape_.queries, shape_.head_size, factor_, inputs_.q.template as<T>() + q_, shape_.query_stride, q);
  }

 private:
  const AttentionShape& shape_;
  const AttentionInputs& inputs_;
  std::int64_t length_, q_, k_;
  float factor_;
};

/// The parts of a lane's scratch.
struct Scratch {
  Scratch(const Lane& lane, const AttentionShape& shape) {
    float* next = static_cast<float*>(lane.scratch);
    const auto take = [&](std::int64_t numbers) {
      float* part = next;
      next += numbers;
      return part;
    };
    const std::int64_t large = square(shape), small = flat(shape);
    p = take(large), dropped = take(large), dp = take(large);
    q = take(small), k = take(small), v = take(small), dy = take(small), out = take(small);
  }
  static std::int64_t numbers(const AttentionShape& shape) { return 3 * square(shape) + 5 * flat(shape); }

  float *p, *dropped, *dp;      ///< queries x row()
  float *q, *k, *v, *dy, *out;  ///< packed positions x head_size, or its transpose

 private:
  static std::int64_t square(const AttentionShape& shape) { return shape.queries * shape.row(); }
  static std::int64_t flat(const AttentionShape& shape) {
    return padded(shape.queries > shape.keys ? shape.queries : shape.keys) * padded(shape.head_size);
  }
};

class Attention final : public AttentionKernels {
 public:
  std::size_t kept_bytes(const AttentionShape& shape, DType type) const override {
    if (shape.queries * shape.keys > kMostKeptProbabilities) return 0;
    return static_cast<std::size_t>(shape.probabilities()) * (type == DType::f32 ? 4 : 2);
  }
  std::size_t scratch_bytes(const AttentionShape& shape, DType, bool, bool) const override {
    return static_cast<std::size_t>(Scratch::numbers(shape)) * sizeof(float);
  }

  void forward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
               const AttentionDropout& dropout, void* kept, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      forward_of(lane, shape, inputs, dropout, static_cast<T*>(kept), y.as<T>());
    });
  }

  void backward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                const AttentionDropout& dropout, const void* kept, ConstData, ConstData dy,
                const AttentionGradients& gradients) const override {
    with_type(dy.type(), [&]<typename T>(T) {
      backward_of(lane, shape, inputs, dropout, static_cast<const T*>(kept), dy.as<T>(), gradients);
    });
  }

  void zero_past(const Lane&, std::int64_t n, std::int64_t steps, std::int64_t width, const float* lengths,
                 Data x) const override {
    with_type(x.type(), [&]<typename T>(T) {
      for (std::int64_t s = 0; s < n; ++s) {
        T* sample = x.as<T>() + s * steps * width;
        for (std::int64_t i = length_of(lengths[s], steps) * width; i < steps * width; ++i) sample[i] = T{};
      }
    });
  }

 private:
  template <typename T>
  static void forward_of(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                         const AttentionDropout& dropout, T* probabilities, T* y) {
    const Scratch scratch(lane, shape);
    const std::int64_t square = shape.queries * shape.row(), width = padded(shape.head_size);
    const T* v = inputs.v.as<T>();
    for (std::int64_t s = 0; s < shape.n; ++s)
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        const Head<T> head(shape, inputs, s, h);
        T* kept = probabilities == nullptr ? nullptr : probabilities + (s * shape.heads + h) * square;
        float* p = scratch.p;
        if constexpr (dtype_of<T> == DType::f32) p = kept == nullptr ? p : kept;
        head.probabilities(scratch.q, scratch.k, p);
        if constexpr (dtype_of<T> != DType::f32)
          if (kept != nullptr) convert(square, p, kept);
        const float* dropped = drop(lane, shape, dropout, s, h, p, scratch.dropped);
        pack(shape.keys, shape.head_size, 1.0F, v + head.k(), shape.key_stride, scratch.v);
        multiply(shape.queries, {dropped, shape.row(), 1}, scratch.v, width, scratch.out, width,
                 [&](std::int64_t i) {
                   return Extent{0, head.limit(i), width};
                 });
        unpack(shape.queries, shape.head_size, 1.0F, scratch.out,
               y + (s * shape.queries * shape.heads + h) * shape.head_size, shape.heads * shape.head_size);
      }
  }

  /// The probabilities for backward: the kept ones, or the same values recomputed. Scratch q holds the packed
  /// queries afterwards.
  template <typename T>
  static const float* kept_probabilities(const Head<T>& head, const Scratch& scratch, std::int64_t square,
                                         const T* kept) {
    if (kept == nullptr)
      head.probabilities(scratch.q, scratch.k, scratch.p);
    else
      head.pack_q(scratch.q);
    if constexpr (dtype_of<T> == DType::f32) {
      return kept == nullptr ? scratch.p : kept;
    } else {
      for (std::int64_t i = 0; i < square && kept == nullptr; i += kLanes) {
        T rounded[kLanes];
        L::store(rounded, L::load(scratch.p + i));
        L::store(scratch.p + i, L::load(rounded));
      }
      if (kept != nullptr) convert(square, kept, scratch.p);
      return scratch.p;
    }
  }

  template <typename T>
  static void backward_of(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                          const AttentionDropout& dropout, const T* probabilities, const T* dy,
                          const AttentionGradients& gradients) {
    const Scratch scratch(lane, shape);
    const std::int64_t row = shape.row(), square = shape.queries * row, width = padded(shape.head_size);
    const T *k = inputs.k.as<T>(), *v = inputs.v.as<T>();
    T *dq = gradients.q.as<T>(), *dk = gradients.k.as<T>(), *dv = gradients.v.as<T>();
    for (std::int64_t s = 0; s < shape.n; ++s)
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        const Head<T> head(shape, inputs, s, h);
        const float* p = kept_probabilities(
            head, scratch, square,
            probabilities == nullptr ? nullptr : probabilities + (s * shape.heads + h) * square);
        const float* dropped = drop(lane, shape, dropout, s, h, p, scratch.dropped);
        pack(shape.queries, shape.head_size, 1.0F,
             dy + (s * shape.queries * shape.heads + h) * shape.head_size, shape.heads * shape.head_size,
             scratch.dy);
        // For a block of keys, the range of queries that may attend to any of them.
        const auto queries = [&](std::int64_t j) {
          return Extent{shape.causal ? j : 0, shape.queries, width};
        };
        multiply(shape.keys, {dropped, 1, row}, scratch.dy, width, scratch.out, width, queries);
        unpack(shape.keys, shape.head_size, 1.0F, scratch.out, dv + head.k(), shape.key_stride);

        pack_transposed(shape.keys, shape.head_size, v + head.k(), shape.key_stride, scratch.v);
        multiply(shape.queries, {scratch.dy, width, 1}, scratch.v, row, scratch.dp, row, [&](std::int64_t i) {
          return Extent{0, shape.head_size, padded(head.limit(i))};
        });
        drop(lane, shape, dropout, s, h, scratch.dp, scratch.dp);
        for (std::int64_t i = 0; i < shape.queries; ++i)
          softmax_backward_row(p + i * row, scratch.dp + i * row, head.attended(i), row);

        pack(shape.keys, shape.head_size, 1.0F, k + head.k(), shape.key_stride, scratch.k);
        multiply(shape.queries, {scratch.dp, row, 1}, scratch.k, width, scratch.out, width,
                 [&](std::int64_t i) {
                   return Extent{0, head.limit(i), width};
                 });
        unpack(shape.queries, shape.head_size, head.factor(), scratch.out, dq + head.q(), shape.query_stride);
        multiply(shape.keys, {scratch.dp, 1, row}, scratch.q, width, scratch.out, width, queries);
        unpack(shape.keys, shape.head_size, 1.0F, scratch.out, dk + head.k(), shape.key_stride);
      }
  }

  /// Returns x, or with dropout `to` = x after dropout.
  static const float* drop(const Lane& lane, const AttentionShape& shape, const AttentionDropout& dropout,
                           std::int64_t sample, std::int64_t head, const float* x, float* to) {
    if (!shape.dropout) return x;
    elementwise_kernels().dropout(lane, 1, shape.queries * shape.row(), x, dropout.rate, dropout.seed,
                                  dropout.purpose + static_cast<std::uint32_t>(head), dropout.step,
                                  dropout.first_sample + static_cast<std::uint32_t>(sample), to);
    return to;
  }
};

}  // namespace

const AttentionKernels& attention_kernels() {
  static const Attention kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
