// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms and moments on a GPU: one block of threads per piece. Counts are integers, and added atomically,
// first in shared memory; moments are added along a tree.
#include "kernels/distribution.h"

#include <cmath>

#include "kernels/cuda_vector.h"
#include "kernels/distribution_table.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

__device__ constexpr BucketTable kTable = bucket_table();

inline __device__ unsigned int bits_of(float value) {
  unsigned int bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline __device__ int bucket_of(float value) {
  const unsigned int bits = bits_of(value), magnitude = bits & 0x7FFFFFFFU;
  unsigned int above = kTable.below[magnitude >> BucketTable::kShift];
  above += magnitude >= kTable.edges[above] ? 1U : 0U;
  return static_cast<int>(bits > 0x80000000U ? kDistributionEdges + 1U - above
                                             : kDistributionEdges + 2U + above);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    measure_kernel(std::int64_t count, const T* x, const float* minus, DistributionBounds bounds,
                   unsigned int* buckets, Distribution* to) {
  __shared__ unsigned int counts[kDistributionBuckets];
  __shared__ double sums[kThreads], squares[kThreads];
  __shared__ float least[kThreads], largest[kThreads];
  __shared__ unsigned int finite[kThreads], zeros[kThreads], beyond[kThreads];
  const auto t = static_cast<int>(threadIdx.x);
  for (std::int64_t piece = blockIdx.x; piece * kDistributionPiece < count; piece += gridDim.x) {
    for (int b = t; b < kDistributionBuckets; b += kThreads) counts[b] = 0;
    __syncthreads();
    const std::int64_t begin = piece * kDistributionPiece;
    const std::int64_t end = count - begin < kDistributionPiece ? count : begin + kDistributionPiece;
    double sum = 0, sum_squares = 0;
    float low = INFINITY, high = -INFINITY;
    unsigned int of_finite = 0, of_zeros = 0, of_beyond = 0;
    for (std::int64_t i = begin + t; i < end; i += kThreads) {
      float value = widened(x[i]);
      if (minus != nullptr) value -= minus[i];
      if (!std::isfinite(value)) continue;
      sum += static_cast<double>(value);
      sum_squares += static_cast<double>(value) * static_cast<double>(value);
      low = value < low ? value : low;
      high = value > high ? value : high;
      ++of_finite;
      of_zeros += value == 0.0F ? 1U : 0U;
      of_beyond += value <= bounds.low || value >= bounds.high ? 1U : 0U;
      atomicAdd(&counts[bucket_of(value)], 1U);
    }
    sums[t] = sum;
    squares[t] = sum_squares;
    least[t] = low;
    largest[t] = high;
    finite[t] = of_finite;
    zeros[t] = of_zeros;
    beyond[t] = of_beyond;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (t < half) {
        sums[t] += sums[t + half];
        squares[t] += squares[t + half];
        least[t] = least[t + half] < least[t] ? least[t + half] : least[t];
        largest[t] = largest[t + half] > largest[t] ? largest[t + half] : largest[t];
        finite[t] += finite[t + half];
        zeros[t] += zeros[t + half];
        beyond[t] += beyond[t + half];
      }
      __syncthreads();
    }
    if (t == 0)
      to[piece] = {sums[0],
                   squares[0],
                   static_cast<std::int64_t>(finite[0]),
                   static_cast<std::int64_t>(zeros[0]),
                   static_cast<std::int64_t>(beyond[0]),
                   least[0],
                   largest[0]};
    for (int b = t; b < kDistributionBuckets; b += kThreads)
      if (counts[b] != 0) atomicAdd(&buckets[b], counts[b]);
    __syncthreads();  // before the next piece clears the counts
  }
}

class CudaDistribution final : public DistributionKernels {
 public:
  void measure(const Lane& lane, std::int64_t count, ConstData x, const float* minus,
               DistributionBounds bounds, std::uint32_t* buckets, Distribution* to) const override {
    if (count <= 0) return;
    const std::int64_t pieces = (count + kDistributionPiece - 1) / kDistributionPiece;
    const auto blocks = static_cast<unsigned int>(pieces < kMaxBlocks ? pieces : kMaxBlocks);
    with_type(x.type(), [&](auto zero) {
      using T = decltype(zero);
      launch(lane, "distribution", measure_kernel<T>, blocks, kThreads, count,
             static_cast<const T*>(x.address()), minus, bounds, buckets, to);
    });
  }
};

}  // namespace

const DistributionKernels& distribution_kernels() {
  static const CudaDistribution kernels;
  return kernels;
}

}  // namespace lockstep::cuda
