// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dynamic shared memory, and asynchronous copies from global to shared memory (PTX ISA, "cp.async"). For *.cu
// files.
//
// A thread starts copies, closes them as a group, and waits for its groups in order. After the wait the
// thread sees its own copies; after a barrier that follows the waits of all threads, the block sees them all.
// A barrier must also separate the last use of a place from the next copy to it.
#pragma once

#include "kernels/cuda_launch.h"

namespace lockstep::cuda {

/// The block's dynamic shared memory, aligned to 16 bytes.
template <typename T>
__device__ T* dynamic_shared() {
#if defined(LOCKSTEP_CUDA_EMULATION)
  return static_cast<T*>(emulation::dynamic_shared_memory());
#else
  extern __shared__ uint4 lockstep_dynamic_shared[];
  return reinterpret_cast<T*>(lockstep_dynamic_shared);
#endif
}

/// launch() with `bytes` of dynamic shared memory per block. GPUs of compute capability 8.0 and later have at
/// least 99 KiB per block, of which 48 KiB, static and dynamic together, need no asking.
template <typename... Parameters, typename... Arguments>
void launch_with_shared(const Lane& lane, const char* name, void (*kernel)(Parameters...), dim3 grid,
                        dim3 block, std::size_t bytes, Arguments&&... arguments) {
  constexpr std::size_t kWithoutAsking = std::size_t{32} << 10;  // whatever static memory the kernel has
  if (bytes > kWithoutAsking)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          name);
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = bytes;
  config.stream = stream_of(lane);
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

/// Starts a copy of kBytes (4 or 16) to shared memory; both addresses are multiples of kBytes. If `present`
/// is false, nothing is read and the target is cleared; `from` must be a valid address all the same.
template <int kBytes>
__device__ void copy_async(void* to, const void* from, bool present) {
  static_assert(kBytes == 4 || kBytes == 16);
#if defined(LOCKSTEP_CUDA_EMULATION)
  emulation::copy_async(to, from, kBytes, present ? kBytes : 0);
#elif defined(__CUDA_ARCH__)
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int size = present ? kBytes : 0;
  if constexpr (kBytes == 16)  // past the first-level cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from), "r"(size)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target), "l"(from), "r"(size)
                 : "memory");
#endif
}

/// Closes the thread's copies since the last call as a group.
inline __device__ void commit_copies() {
#if defined(LOCKSTEP_CUDA_EMULATION)
  emulation::commit_copies();
#elif defined(__CUDA_ARCH__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most kPending of the thread's latest groups are not done.
template <int kPending>
__device__ void wait_copies() {
#if defined(LOCKSTEP_CUDA_EMULATION)
  emulation::wait_copies(kPending);
#elif defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

}  // namespace lockstep::cuda
