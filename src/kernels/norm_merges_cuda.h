// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel of NormKernels::merge_moments and merge_sums (private to norm_cuda.cu): all merges of trees, in
// one launch. A block has some columns (channels, or numbers of a sum) of all partials, which no other block
// touches. Its rows of threads share the merges of a level.
#pragma once

#include "kernels/cuda_shared_memory.h"
#include "kernels/norm.h"

namespace lockstep::cuda {
namespace {

constexpr int kMergeColumns = 32;  // one warp
constexpr int kMergeRows = kThreads / kMergeColumns;

/// Mean and m2 of one channel of two partials, with the operations of the CPU in its order.
inline __device__ void merge_channel(double left_count, double right_count, double& mean, double& m2,
                                     double right_mean, double right_m2) {
  if (right_count == 0) return;
  if (left_count == 0) {
    mean = right_mean;
    m2 = right_m2;
    return;
  }
  const double count = left_count + right_count;
  const double delta = right_mean - mean;
  mean += delta * (right_count / count);
  m2 += right_m2 + delta * delta * (left_count * right_count / count);
}

/// With kMoments, a partial is a leaf {count, mean[columns], m2[columns]}, else `columns` numbers. Counts are
/// merged in shared memory by each block, tree.inputs doubles: the leaves keep theirs, which other blocks
/// read.
template <bool kMoments>
__global__ void __launch_bounds__(kThreads)
    merge_tree_kernel(std::int64_t columns, TreeMerges tree, double* in, double* out) {
  double* counts = nullptr;
  const int lane = static_cast<int>(threadIdx.x) % kMergeColumns;
  const int row = static_cast<int>(threadIdx.x) / kMergeColumns;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kMergeColumns + lane;
  const bool mine = column < columns;
  if constexpr (kMoments) {
    counts = dynamic_shared<double>();
    for (int i = static_cast<int>(threadIdx.x); i < tree.inputs; i += kThreads)
      counts[i] = in[tree.places[i]];
    __syncthreads();
  }
  int begin = 0;
  for (int level = 0; level < tree.levels; ++level) {
    const int end = tree.level_ends[level];
    for (int s = begin + row; s < end; s += kMergeRows) {
      const TreeMerges::Step step = tree.steps[s];
      double* into = in + tree.places[step.into] + column;
      const double* from = in + tree.places[step.from] + column;
      if constexpr (kMoments) {
        const double left = counts[step.into], right = counts[step.from];
        __syncwarp();  // all threads have read the count
        if (lane == 0) counts[step.into] = left + right;
        if (mine) merge_channel(left, right, into[1], into[1 + columns], from[1], from[1 + columns]);
      } else {
        if (mine) into[0] += from[0];
      }
    }
    __syncthreads();
    begin = end;
  }
  for (int k = row; k < tree.outputs; k += kMergeRows) {
    const TreeMerges::Output result = tree.results[k];
    const double* from = in + tree.places[result.input] + column;
    double* to = out + result.place + column;
    if constexpr (kMoments) {
      if (column == 0) to[0] = counts[result.input];
      if (mine) {
        to[1] = from[1];
        to[1 + columns] = from[1 + columns];
      }
    } else {
      if (mine) to[0] = from[0];
    }
  }
}

template <bool kMoments>
void merge_along_tree(const Lane& lane, const char* name, std::int64_t columns, const TreeMerges& tree,
                      double* in, double* out) {
  if (columns == 0 || tree.outputs == 0) return;
  const auto blocks = static_cast<unsigned int>((columns + kMergeColumns - 1) / kMergeColumns);
  const std::size_t shared = kMoments ? static_cast<std::size_t>(tree.inputs) * sizeof(double) : 0;
  launch_with_shared(lane, name, merge_tree_kernel<kMoments>, blocks, kThreads, shared, columns, tree, in,
                     out);
}

}  // namespace
}  // namespace lockstep::cuda
