// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The products of kernels/cuda_warpgroup.h on the CPU, computed at once by each warp for its 16 rows. The
// right operand is read by the place of each element in a tile with the 128-byte swizzle (PTX ISA, "Matrix
// descriptor"), which is a permutation by bits of the address.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "tensor_cores_emulation.h"

namespace lockstep::emulation {

template <typename T>
struct TileView {
  const T* tile;
  int step;
  bool by_rows;

  T at(unsigned int k, unsigned int j) const {
    const unsigned int row = by_rows ? j : 16U * static_cast<unsigned int>(step) + k;
    const unsigned int column = by_rows ? 16U * static_cast<unsigned int>(step) + k : j;
    const std::uintptr_t plain = reinterpret_cast<std::uintptr_t>(tile) + row * 128U + column * 2U;
    const T* place = reinterpret_cast<const T*>(plain ^ (plain >> 7 & 7U) << 4);
    return *place;
  }
};

/// c += a b of 16 x 64 += (16 x 16) (16 x 64).
template <typename T>
void multiply_warpgroup(const std::uint32_t* a, const TileView<T>& b, float* c) {
  require_shared(b.tile, 128, "wgmma");
  if (reinterpret_cast<std::uintptr_t>(b.tile) % 1024 != 0) {
    std::fprintf(stderr, "emulated GPU: a tile of wgmma is not aligned to 1024 bytes\n");
    std::abort();
  }
  const unsigned int lane = lane_index();
  for (unsigned int n = 0; n < 8; ++n) {
    std::uint32_t right[2];
    for (unsigned int half = 0; half < 2; ++half) {
      const unsigned int k = lane % 4 * 2 + 8 * half, j = 8 * n + lane / 4;
      right[half] =
          static_cast<std::uint32_t>(b.at(k, j).bits) | static_cast<std::uint32_t>(b.at(k + 1, j).bits) << 16;
    }
    multiply_matrices<T>(a, right, c + 4 * n);
  }
}

}  // namespace lockstep::emulation
