// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernel launches and the conversion of CUDA error codes to Errors. Private to the *_cuda files.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/lane.h"

namespace lockstep::cuda {

/// Throws Error(device) with the call's or kernel's name and CUDA's message unless `error` is cudaSuccess.
/// Calls are asynchronous: the error may come from an earlier one.
void check(cudaError_t error, const char* call);

/// Throws Error(bug) with `what` unless `condition`. It replaces LOCKSTEP_CHECK in *.cu files, which cannot
/// include fmt.
void require(bool condition, const char* what);

inline cudaStream_t stream_of(const Lane& lane) { return static_cast<cudaStream_t>(lane.stream); }

/// Queues kernel<<<grid, block>>>(args...) on the lane's stream; `name` is used in errors.
template <typename... Parameters, typename... Arguments>
void launch(const Lane& lane, const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream_of(lane);
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

/// The most lane scratch that a stateless kernel family needs (cuda_columns.h, loss_cuda.cu).
inline constexpr std::size_t kScratchBytes = std::size_t{1} << 20;

/// The lane's scratch as doubles. Throws Error(bug) if the lane has less than kScratchBytes.
double* scratch_of(const Lane& lane);

inline constexpr int kThreads = 256;  ///< block size of all our kernels
inline constexpr std::int64_t kMaxBlocks =
    4096;  ///< grid limit of element-wise kernels; they loop over the rest

/// The number of blocks of kThreads for `pieces` pieces of work, one per thread up to kMaxBlocks blocks.
inline unsigned int blocks_for(std::int64_t pieces) {
  const std::int64_t blocks = (pieces + kThreads - 1) / kThreads;
  return static_cast<unsigned int>(blocks < 1 ? 1 : blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

}  // namespace lockstep::cuda
