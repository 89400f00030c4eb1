// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Partial sums of a loss and of its correct rows, one per block, and their total (private to loss_cuda.cu).
#pragma once

#include "kernels/cuda_rows.h"

namespace lockstep::cuda {
namespace {

/// Most partial sums of a loss: rows i, i + kLossBlocks, ... are added by one block, in this order.
constexpr std::int64_t kLossBlocks = 1024;

/// Stores the losses and correct rows of this block's groups in its partial sum: {loss, correct}.
template <int kGroup>
__device__ void write_partial(double loss, double hits, double* partial) {
  constexpr int kRows = Group<kGroup>::kRows;
  __shared__ double losses[kRows], counts[kRows];
  if (Group<kGroup>::thread() == 0) {
    losses[threadIdx.x / kGroup] = loss;
    counts[threadIdx.x / kGroup] = hits;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  loss = hits = 0.0;
  for (int i = 0; i < kRows; ++i) {
    loss += losses[i];
    hits += counts[i];
  }
  partial[2 * blockIdx.x] = loss;
  partial[2 * blockIdx.x + 1] = hits;
}

/// Runs in one block: thread t adds partial sums t, t + kThreads, ..., and the threads are added along a
/// tree.
__global__ void __launch_bounds__(kThreads)
    finish_loss_kernel(int blocks, const double* partial, double* loss_sum, std::int64_t* correct) {
  double loss = 0.0, hits = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) {
    loss += partial[2 * i];
    hits += partial[2 * i + 1];
  }
  loss = Group<kThreads>::sum(loss);
  hits = Group<kThreads>::sum(hits);
  if (threadIdx.x != 0) return;
  *loss_sum = loss;
  *correct = static_cast<std::int64_t>(hits);
}

}  // namespace
}  // namespace lockstep::cuda
