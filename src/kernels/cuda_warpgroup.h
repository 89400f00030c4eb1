// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of a warpgroup (four warps, the first of which has a number divisible by 4) on the tensor cores of
// Hopper GPUs: 64 x 64 += (64 x 16) (16 x 64), in 16-bit types with float32 sums (PTX ISA,
// "wgmma.mma_async"). For *.cu files that are compiled for sm_90a. All 128 threads must call these functions
// together.
//
// The left operand and the sums are in registers. A warp has 16 of the 64 rows, and its threads hold the
// elements of Left and Accumulator (cuda_tensor_cores.h); accumulator n has columns 8 n to 8 n + 7.
//
// The right operand is in a tile of shared memory: rows of 64 numbers, 128 bytes apart, from an address
// divisible by 1024. The pieces of 16 bytes of row r are permuted: piece c is at place c ^ (r % 8) ("128-byte
// swizzle"), so that eight rows of a piece, and the eight pieces of a row, fall into different banks.
//
// Products are asynchronous. Between start_product() and the return of wait_products() nothing may touch
// their registers or write their tiles; take_sums() follows the wait. Writes to a tile need publish_tiles()
// by the writing thread and a barrier before products read it.
#pragma once

#include "kernels/cuda_tensor_cores.h"
#if defined(LOCKSTEP_CUDA_EMULATION)
#include "warpgroup_emulation.h"
#endif

namespace lockstep::cuda {

inline constexpr int kTileColumns = 64, kTileAlignment = 1024, kWarpgroup = 128;

/// Where piece `piece` of row `row` of a tile begins, in elements.
inline __device__ int tile_place(int row, int piece) {
  return row * kTileColumns + ((piece ^ (row & 7)) << 3);
}

/// `at`, rounded up to the alignment of tiles.
template <typename T>
__device__ T* aligned_tile(T* at) {
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
#else
  const auto address = reinterpret_cast<std::uintptr_t>(at);
#endif
  return at + (kTileAlignment - address % kTileAlignment) % kTileAlignment / sizeof(T);
}

/// The 16 x 16 operand of rows `row` to row + 15 and columns 16 k to 16 k + 15 of a tile, for a warp.
template <typename T>
__device__ Left load_left_of_tile(const T* tile, int row, int k) {
  const int lane = lane_of_warp();
  Left value;
  load_matrices<false>(tile + tile_place(row + lane % 16, 2 * k + lane / 16), value.at);
  return value;
}

/// Makes the thread's finished writes to shared memory visible to products.
inline __device__ void publish_tiles() {
#if defined(__CUDA_ARCH__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// Before the first product, and after registers of products were written.
inline __device__ void open_products() {
#if defined(__CUDA_ARCH__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/// Closes the products since the last call as a group.
inline __device__ void close_products() {
#if defined(__CUDA_ARCH__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Waits until at most kPending of the latest groups are not done.
template <int kPending>
__device__ void wait_products() {
#if defined(__CUDA_ARCH__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#endif
}

/// The sums may be read from here on: the compiler moves no access across this call.
inline __device__ void take_sums([[maybe_unused]] Accumulator (&sums)[8]) {
#if defined(__CUDA_ARCH__)
#pragma unroll
  for (int n = 0; n < 8; ++n)
    asm volatile(""
                 : "+f"(sums[n].at[0]), "+f"(sums[n].at[1]), "+f"(sums[n].at[2]), "+f"(sums[n].at[3])
                 :
                 : "memory");
#endif
}

/// Names 64 x 16 of the right operands' elements (j, k) in a tile.
/// kByRows: element (k, j) is at row j, column 16 step + k; otherwise at row 16 step + k, column j.
template <bool kByRows, typename T>
__device__ auto right_of_tile(const T* tile, int step) {
#if defined(LOCKSTEP_CUDA_EMULATION)
  return emulation::TileView<T>{tile, step, kByRows};
#elif defined(__CUDA_ARCH__)
  // PTX ISA, "Matrix descriptor": address / 16, leading and stride byte offsets / 16 (1: unused, 64: from
  // eight rows to the next eight), and 1 for the 128-byte swizzle.
  constexpr std::uint64_t kForm = std::uint64_t{1} << 62 | std::uint64_t{64} << 32 | std::uint64_t{1} << 16;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile)) +
                       static_cast<std::uint32_t>(step) * (kByRows ? 32U : 2048U);
  return kForm | static_cast<std::uint64_t>(address >> 4 & 0x3FFFU);
#else
  return std::uint64_t{0};
#endif
}

/// Starts sums (+)= a b; without kAdd the sums are overwritten.
template <typename T, bool kByRows, bool kAdd>
__device__ void start_product(const Left& a, const T* tile, int step, Accumulator (&c)[8]) {
  [[maybe_unused]] const auto b = right_of_tile<kByRows>(tile, step);
#if defined(LOCKSTEP_CUDA_EMULATION)
  if (!kAdd)
    for (Accumulator& sums : c) sums = {};
  emulation::multiply_warpgroup<T>(a.at, b, &c[0].at[0]);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LOCKSTEP_SUMS(n) "+f"(c[n].at[0]), "+f"(c[n].at[1]), "+f"(c[n].at[2]), "+f"(c[n].at[3])
#define LOCKSTEP_WGMMA(type)                                                                         \
  asm volatile(                                                                                      \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                                   \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                    \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18,"       \
      " %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},"                           \
      " {%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}\n"                                               \
      : LOCKSTEP_SUMS(0), LOCKSTEP_SUMS(1), LOCKSTEP_SUMS(2), LOCKSTEP_SUMS(3), LOCKSTEP_SUMS(4),    \
        LOCKSTEP_SUMS(5), LOCKSTEP_SUMS(6), LOCKSTEP_SUMS(7)                                         \
      : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "l"(b), "r"(static_cast<int>(kAdd)), \
        "n"(kByRows ? 0 : 1))
  if constexpr (dtype_of<T> == DType::bf16)
    LOCKSTEP_WGMMA("bf16");
  else
    LOCKSTEP_WGMMA("f16");
#undef LOCKSTEP_WGMMA
#undef LOCKSTEP_SUMS
#endif
}

}  // namespace lockstep::cuda
