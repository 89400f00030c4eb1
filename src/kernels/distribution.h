// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms and moments of arrays, for summaries, computed on the device that holds the numbers.
//
// An array is cut into pieces of kDistributionPiece numbers. Counts are integers, so their sums are exact in
// any order. Moments are summed in double within a piece, in an order that its length alone fixes; the caller
// adds pieces in their order. So results do not depend on threads or ranks. NaN and infinities are counted
// and otherwise left out.
//
// The buckets are those of TensorFlow's histograms: edge 0 is 1e-12, each further one is 1.1 times the one
// before, in double, while it is below 1e20. Bucket b holds [limit(b - 1), limit(b)), with the limits
// -DBL_MAX, the negative edges, 0, the positive edges, DBL_MAX. This header uses plain types only (isa.h).
//
// Why pieces: a sum of doubles over a million weights depends on its order; counts do not. Ranks share the
// pieces of models above 2^20 numbers and send them to the chief; smaller ones are measured by the chief
// alone, because messages would take longer. Activations are measured per microshard, while they are in
// cache. A bucket is found by one look into a table: the upper 12 bits of a float32's magnitude name a cell
// that holds one edge at most, so one comparison decides. No edge is a float32, so one table serves both
// signs. The aim is under 1 % of the steps at the default interval.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

inline constexpr std::int64_t kDistributionPiece = 16384;
inline constexpr int kDistributionEdges = 774;  ///< positive ones
inline constexpr int kDistributionBuckets = 2 * kDistributionEdges + 3;

/// The numbers of one piece.
struct Distribution {
  double sum = 0, sum_squares = 0;
  std::int64_t finite = 0;       ///< numbers that are neither NaN nor infinite; the rest is of these
  std::int64_t zeros = 0;        ///< equal to 0
  std::int64_t beyond = 0;       ///< at the bounds or outside of them
  float least = 0, largest = 0;  ///< without a value if finite is 0
};

/// What counts as Distribution::beyond: numbers <= low or >= high.
struct DistributionBounds {
  float low = -__builtin_inff(), high = __builtin_inff();
};

class DistributionKernels {
 public:
  virtual ~DistributionKernels();

  /// to[p] = the distribution of piece p of x, or of x - minus (float32, rounded) unless `minus` is null,
  /// which needs a float32 x. Adds the counts of all pieces to buckets[kDistributionBuckets]; threads may do
  /// so at the same time. `to` and `buckets` are in device memory.
  virtual void measure(const Lane&, std::int64_t count, ConstData x, const float* minus,
                       DistributionBounds bounds, std::uint32_t* buckets, Distribution* to) const = 0;
};

}  // namespace lockstep
