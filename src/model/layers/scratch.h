// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Cuts a layer's saved state or a worker's scratch memory into parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/layer.h"

namespace lockstep {

/// Hands out 64-byte aligned parts of a block of memory. With a null block it only counts their size.
class Scratch {
 public:
  explicit Scratch(void* memory = nullptr) : begin_(static_cast<std::byte*>(memory)) {}
  template <typename T>
  T* take(std::int64_t count) {
    std::byte* part = begin_ == nullptr ? nullptr : begin_ + used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(part);
  }
  std::size_t used_bytes() const { return used_; }
  /// `lane` with the rest of its scratch memory, which must be the block.
  Lane rest_of(Lane lane) const {
    LOCKSTEP_CHECK(lane.scratch == begin_ && lane.scratch_bytes >= used_,
                   "lane {} has {} bytes of scratch memory", lane.index, lane.scratch_bytes);
    lane.scratch = begin_ + used_;
    lane.scratch_bytes -= used_;
    return lane;
  }

 private:
  std::byte* begin_;
  std::size_t used_ = 0;
};

}  // namespace lockstep
