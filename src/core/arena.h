// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory planning for one arena. The caller declares blocks with a size and a lifetime, commits the plan
// once, and then places views at the planned offsets. Blocks whose lifetimes do not overlap may share
// addresses, so the activations of a step need the memory of their peak, not of their sum.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace lockstep {

/// The layout of one arena. Arithmetic only: it allocates no device memory. Times are steps of a schedule; a
/// lifetime includes both ends.
class ArenaPlan {
 public:
  using Block = int;
  static constexpr int kForever = std::numeric_limits<int>::max();
  static constexpr std::size_t kAlignment = 64;

  /// Declares a block of `bytes` that is in use from time `first` to time `last`. Before commit().
  Block add(std::size_t bytes, int first = 0, int last = kForever);
  /// Extends the lifetime of `block` to include `time`. Before commit().
  void use(Block block, int time);
  /// Assigns offsets: largest block first, each at the lowest offset that is free during its whole lifetime.
  void commit();

  std::size_t offset_of(Block block) const;
  std::size_t bytes_of(Block block) const;
  /// The size of the arena: at least the largest sum of sizes that are in use at one time.
  std::size_t total_bytes() const { return total_bytes_; }

 private:
  struct Entry {
    std::size_t bytes;
    int first, last;
    std::size_t offset;
  };
  std::vector<Entry> entries_;
  std::size_t total_bytes_ = 0;
  bool committed_ = false;
};

}  // namespace lockstep
