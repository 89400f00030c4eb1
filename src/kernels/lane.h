// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane executes one microshard's work: on the CPU it is a compute thread of the rank, on a GPU a stream.
// Lanes 0 .. lanes-1 may work at the same time. Primitives keep their state per lane, so lanes share none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

struct Lane {
  int index = 0;
  void* stream =
      nullptr;  ///< the device's queue; null on the CPU, where a call returns after its work is done
  void* scratch = nullptr;        ///< 64-byte aligned; contents are not preserved across calls
  std::size_t scratch_bytes = 0;  ///< at least the largest scratch_bytes() of all primitives in use
  /// Device-visible address of the global step, for kernels that are captured once and launched each step (a
  /// CUDA graph). Null: the step argument of the call is used.
  const std::uint32_t* step_word = nullptr;
};

}  // namespace lockstep
