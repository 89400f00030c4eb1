// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The tensor core instructions of kernels/cuda_tensor_cores.h on the CPU. Elements are assigned to lanes as
// in the PTX ISA (sections "ldmatrix" and "mma.m16n8k16"). All lanes of a warp must call each function.
#pragma once

#include <cstdint>

#include "kernels/cuda_vector.h"

namespace lockstep::emulation {

inline constexpr unsigned int kMostWarps = 32;

/// The values that the lanes of a warp publish to each other.
template <typename T>
struct Shown {
  T of[kMostWarps][32];
  T* warp() { return of[threadIdx.x / 32U]; }
};

/// ldmatrix.x4: row r of matrix m is at the address passed by lane 8 m + r. A lane receives two adjacent
/// elements of row lane / 4 of each matrix, or (transposed) of column lane / 4.
template <bool kTransposed>
void load_matrices(const void* row, std::uint32_t* to) {
  static thread_local Shown<const std::uint16_t*> shown;
  const unsigned int lane = lane_index();
  require_shared(row, 16, "ldmatrix");
  const std::uint16_t** rows = shown.warp();
  rows[lane] = static_cast<const std::uint16_t*>(row);
  __syncwarp();
  for (unsigned int m = 0; m < 4; ++m) {
    std::uint32_t pair[2];
    for (unsigned int e = 0; e < 2; ++e) {
      const unsigned int neighbour = lane % 4 * 2 + e, other = lane / 4;
      pair[e] = kTransposed ? rows[8 * m + neighbour][other] : rows[8 * m + other][neighbour];
    }
    to[m] = pair[0] | pair[1] << 16;
  }
  __syncwarp();
}

/// mma.m16n8k16: c += a b, in float32, in the order of the inner index.
template <typename T>
void multiply_matrices(const std::uint32_t* a, const std::uint32_t* b, float* c) {
  struct Operands {
    std::uint32_t a[4], b[2];
  };
  static thread_local Shown<Operands> shown;
  Operands* lanes = shown.warp();
  const unsigned int lane = lane_index();
  for (int i = 0; i < 4; ++i) lanes[lane].a[i] = a[i];
  for (int i = 0; i < 2; ++i) lanes[lane].b[i] = b[i];
  __syncwarp();
  const auto half = [](std::uint32_t pair, unsigned int e) {
    return to_float(T{static_cast<std::uint16_t>(pair >> (16 * e))});
  };
  for (unsigned int i = 0; i < 4; ++i) {
    const unsigned int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    float sum = c[i];
    for (unsigned int k = 0; k < 16; ++k) {
      const float left = half(lanes[row % 8 * 4 + k % 8 / 2].a[k / 8 * 2 + row / 8], k % 2);
      const float right = half(lanes[column * 4 + k % 8 / 2].b[k / 8], k % 2);
      sum += left * right;
    }
    c[i] = sum;
  }
  __syncwarp();
}

}  // namespace lockstep::emulation
