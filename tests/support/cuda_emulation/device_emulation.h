// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Device code on the CPU: qualifiers, built-in variables, barriers, warp shuffles, dynamic shared memory,
// asynchronous copies. The threads of a block are fibers of one host thread, which runs each in turn until it
// ends or waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)

struct uint3 {
  unsigned int x, y, z;
};
struct alignas(8) float2 {
  float x, y;
};
struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
};
// constinit: no initialisation check at each use.
extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace lockstep::emulation {

/// Runs all blocks of a grid; each thread of each block calls `kernel`. Each block has `shared_bytes` of
/// dynamic shared memory. They are poisoned (NaN) at its start, and have a guard area that is checked at its
/// end.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);
/// The block's dynamic shared memory. Ends the process if there is none.
void* dynamic_shared_memory();
/// The bytes of the block's dynamic shared memory from this address on; 0: the address lies elsewhere.
std::size_t dynamic_shared_bytes_from(const void* address);

/// An access of an instruction that names an address space. Ends the process with a message unless the
/// address is a multiple of `bytes` and all of the access is in that space. Global: memory of cudaMalloc or
/// cudaHostAlloc. Shared: the block's dynamic memory, or a __shared__ variable.
void require_global(const void* address, std::size_t bytes, const char* instruction);
void require_shared(const void* address, std::size_t bytes, const char* instruction);

/// cp.async: copies `present` bytes and clears the rest of `bytes`. It happens when the thread waits for the
/// copy's group, and not at all if it never does: a missing wait shows each time. With
/// LOCKSTEP_EMULATED_RUN_AHEAD set it happens at once, so that memory that is overwritten too early shows.
void copy_async(void* to, const void* from, std::size_t bytes, std::size_t present);
/// cp.async.commit_group: the thread's copies since the last commit become a group.
void commit_copies();
/// cp.async.wait_group: waits until at most `pending` of the thread's groups are not done, in order.
void wait_copies(std::size_t pending);

/// Waits until all lanes of this thread's warp have passed 8 bytes here, and returns those of lane `from`.
/// `mask` must name the whole warp. `what` is the caller's name for the message if the lanes never
/// synchronise.
std::uint64_t exchange(unsigned int mask, std::uint64_t value, unsigned int from, const char* what);
/// The block's barrier.
void block_barrier();

template <typename T>
T exchange_as(unsigned int mask, T value, unsigned int from, const char* what) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, from, what);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

inline unsigned int lane_index() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32U;
}

}  // namespace lockstep::emulation

inline void __syncthreads() { lockstep::emulation::block_barrier(); }
inline void __syncwarp(unsigned int mask = 0xFFFFFFFFU) {
  lockstep::emulation::exchange(mask, 0, 0, "__syncwarp");
}
/// Blocks run at the same time; returns the value before.
template <typename T>
T atomicAdd(T* to, T value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
template <typename T>
T __shfl_sync(unsigned int mask, T value, int lane) {
  return lockstep::emulation::exchange_as(mask, value, static_cast<unsigned int>(lane) % 32U, "__shfl_sync");
}
template <typename T>
T __shfl_xor_sync(unsigned int mask, T value, int lane_mask) {
  return lockstep::emulation::exchange_as(
      mask, value, lockstep::emulation::lane_index() ^ static_cast<unsigned int>(lane_mask),
      "__shfl_xor_sync");
}
template <typename T>
T __shfl_down_sync(unsigned int mask, T value, unsigned int delta) {
  const unsigned int lane = lockstep::emulation::lane_index(), from = lane + delta;
  return lockstep::emulation::exchange_as(mask, value, from < 32U ? from : lane, "__shfl_down_sync");
}
