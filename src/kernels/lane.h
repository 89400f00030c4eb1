// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane is where one microshard's work runs: a compute thread of the rank on the CPU, a stream on a GPU.
// Lanes are numbered 0 .. lanes-1; a primitive keeps what it needs per lane, so lanes never share state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

struct Lane {
  int index = 0;
  void* stream = nullptr;         ///< the device's queue; null on the CPU (work is done when a call returns)
  void* scratch = nullptr;        ///< 64-byte aligned; contents do not survive a call
  std::size_t scratch_bytes = 0;  ///< at least the largest scratch_bytes() of all primitives in use
  /// Where a kernel that is captured once and launched each step (a CUDA graph) reads the global step; memory
  /// that the device sees. Null: the step that the call gives counts.
  const std::uint32_t* step_word = nullptr;
};

}  // namespace lockstep
