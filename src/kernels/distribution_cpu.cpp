// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms and moments on the CPU, per instruction-set level (isa.h). A piece is taken in chunks that stay
// in the first cache: one pass for moments, in vectors, and one for buckets, number by number.
#include "kernels/distribution.h"

#include "kernels/distribution_table.h"
#include "kernels/isa.h"
#include "kernels/vec.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

constexpr BucketTable kTable = bucket_table();

// Number i of a piece is added to column i % kColumns; columns are added along a tree.
constexpr int kColumns = 16;
constexpr int kDoubles = kLanes / 2, kPieces = kColumns / kDoubles, kVecs = kColumns / kLanes;
using Doubles = double __attribute__((vector_size(kDoubles * sizeof(double))));
using UnalignedFloats = float __attribute__((vector_size(kDoubles * sizeof(float)), aligned(4), may_alias));
using Ints = std::int32_t __attribute__((vector_size(kLanes * sizeof(float))));

constexpr std::int64_t kChunk = 1024;
static_assert(kDistributionPiece % kChunk == 0 && kChunk % kColumns == 0);

/// Columns of the moments, and of counts, of a piece in progress.
struct Columns {
  double sums[kColumns] = {}, squares[kColumns] = {};
  float least[kColumns], largest[kColumns];
  std::int64_t zeros = 0, beyond = 0, not_finite = 0;
  Columns() {
    for (int i = 0; i < kColumns; ++i) {
      least[i] = __builtin_inff();
      largest[i] = -__builtin_inff();
    }
  }
};

inline void add_one(float x, int column, DistributionBounds bounds, Columns& to) {
  if (!(x - x == 0.0F)) {
    ++to.not_finite;
    return;
  }
  const auto value = static_cast<double>(x);
  to.sums[column] += value;
  to.squares[column] += value * value;
  if (x < to.least[column]) to.least[column] = x;
  if (x > to.largest[column]) to.largest[column] = x;
  to.zeros += x == 0.0F ? 1 : 0;
  to.beyond += x <= bounds.low || x >= bounds.high ? 1 : 0;
}

inline std::int64_t total(Ints counts) {
  std::int64_t sum = 0;
  for (int i = 0; i < kLanes; ++i) sum -= counts[i];  // a comparison that holds is -1
  return sum;
}

/// `count` is a multiple of kColumns, and all numbers are finite.
inline void add_finite(const float* x, std::int64_t count, DistributionBounds bounds, Columns& to) {
  Doubles sums[kPieces], squares[kPieces];
  __builtin_memcpy(sums, to.sums, sizeof sums);
  __builtin_memcpy(squares, to.squares, sizeof squares);
  Vec least[kVecs], largest[kVecs];
  __builtin_memcpy(least, to.least, sizeof least);
  __builtin_memcpy(largest, to.largest, sizeof largest);
  Ints zeros{}, beyond{};
  for (std::int64_t i = 0; i < count; i += kColumns) {
#pragma GCC unroll 16
    for (int k = 0; k < kPieces; ++k) {
      const Doubles value =
          __builtin_convertvector(*reinterpret_cast<const UnalignedFloats*>(x + i + k * kDoubles), Doubles);
      sums[k] += value;
      squares[k] += value * value;
    }
#pragma GCC unroll 16
    for (int k = 0; k < kVecs; ++k) {
      const Vec value = Lanes<Vec>::load(x + i + k * kLanes);
      least[k] = value < least[k] ? value : least[k];
      largest[k] = value > largest[k] ? value : largest[k];
      zeros += reinterpret_cast<Ints>(value == 0.0F);
      beyond += reinterpret_cast<Ints>((value <= bounds.low) | (value >= bounds.high));
    }
  }
  __builtin_memcpy(to.sums, sums, sizeof sums);
  __builtin_memcpy(to.squares, squares, sizeof squares);
  __builtin_memcpy(to.least, least, sizeof least);
  __builtin_memcpy(to.largest, largest, sizeof largest);
  to.zeros += total(zeros);
  to.beyond += total(beyond);
}

inline bool all_finite(const float* x, std::int64_t count) {
  std::uint32_t broken = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = __builtin_bit_cast(std::uint32_t, x[i]);
    broken |= (bits & 0x7F800000U) == 0x7F800000U ? 1U : 0U;
  }
  return broken == 0;
}

/// A number that is not finite adds to a bucket after the others, which nobody reads.
inline void add_buckets(const float* x, std::int64_t count, std::uint32_t* even, std::uint32_t* odd) {
  const auto add = [](float value, std::uint32_t* to) {
    const auto bits = __builtin_bit_cast(std::uint32_t, value), magnitude = bits & 0x7FFFFFFFU;
    std::uint32_t above = kTable.below[magnitude >> BucketTable::kShift];
    above += magnitude >= kTable.edges[above] ? 1U : 0U;
    std::uint32_t bucket =
        bits > 0x80000000U ? kDistributionEdges + 1U - above : kDistributionEdges + 2U + above;
    bucket = magnitude >= 0x7F800000U ? kDistributionBuckets : bucket;
    ++to[bucket];
  };
  std::int64_t i = 0;
  for (; i + 2 <= count; i += 2) {  // two tables: equal numbers that follow each other do not wait
    add(x[i], even);
    add(x[i + 1], odd);
  }
  if (i < count) add(x[i], even);
}

/// The chunk as float32: x itself, or a copy in `buffer`.
inline const float* chunk_of(ConstData x, const float* minus, std::int64_t first, std::int64_t count,
                             float* buffer) {
  if (x.type() == DType::f32) {
    const float* const from = static_cast<const float*>(x.address()) + first;
    if (minus == nullptr) return from;
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = from[i] - minus[first + i];
  } else if (x.type() == DType::bf16) {
    const auto* const from = static_cast<const BFloat16*>(x.address()) + first;
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = to_float(from[i]);
  } else {
    const auto* const from = static_cast<const Float16*>(x.address()) + first;
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = to_float(from[i]);
  }
  return buffer;
}

inline double tree_sum(double* columns) {
  for (int half = kColumns / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) columns[i] += columns[i + half];
  return columns[0];
}

inline Distribution distribution_of(Columns& columns, std::int64_t count) {
  Distribution to;
  to.sum = tree_sum(columns.sums);
  to.sum_squares = tree_sum(columns.squares);
  to.finite = count - columns.not_finite;
  to.zeros = columns.zeros;
  to.beyond = columns.beyond;
  to.least = columns.least[0];
  to.largest = columns.largest[0];
  for (int i = 1; i < kColumns; ++i) {
    if (columns.least[i] < to.least) to.least = columns.least[i];
    if (columns.largest[i] > to.largest) to.largest = columns.largest[i];
  }
  return to;
}

class CpuDistribution final : public DistributionKernels {
 public:
  void measure(const Lane&, std::int64_t count, ConstData x, const float* minus, DistributionBounds bounds,
               std::uint32_t* buckets, Distribution* to) const override {
    std::uint32_t even[kDistributionBuckets + 1] = {}, odd[kDistributionBuckets + 1] = {};
    alignas(64) float buffer[kChunk];
    for (std::int64_t begin = 0; begin < count; begin += kDistributionPiece) {
      const std::int64_t end = count - begin < kDistributionPiece ? count : begin + kDistributionPiece;
      Columns columns;
      for (std::int64_t first = begin; first < end; first += kChunk) {
        const std::int64_t size = end - first < kChunk ? end - first : kChunk;
        const float* const values = chunk_of(x, minus, first, size, buffer);
        const std::int64_t whole = all_finite(values, size) ? size / kColumns * kColumns : 0;
        add_finite(values, whole, bounds, columns);
        for (std::int64_t i = whole; i < size; ++i)
          add_one(values[i], static_cast<int>(i % kColumns), bounds, columns);
        add_buckets(values, size, even, odd);
      }
      to[begin / kDistributionPiece] = distribution_of(columns, end - begin);
    }
    for (int b = 0; b < kDistributionBuckets; ++b)
      if (const std::uint32_t added = even[b] + odd[b]; added != 0)
        __atomic_fetch_add(buckets + b, added, __ATOMIC_RELAXED);
  }
};

}  // namespace

const DistributionKernels& distribution_kernels() {
  static const CpuDistribution kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
