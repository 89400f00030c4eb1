// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory planning: say what is needed and for how long, commit once, then view. Blocks whose lifetimes do not
// overlap share addresses, so a step's activations cost what is alive at the worst moment, not their sum.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace lockstep {

/// A plan of one arena: pure arithmetic, no memory. Times are steps of a schedule, both ends included.
class ArenaPlan {
 public:
  using Block = int;
  static constexpr int kForever = std::numeric_limits<int>::max();
  static constexpr std::size_t kAlignment = 64;

  /// Asks for `bytes` from time `first` to time `last`.
  Block add(std::size_t bytes, int first = 0, int last = kForever);
  /// Extends a block's life to include `time`.
  void use(Block block, int time);
  /// Places all blocks, the largest first, each at the lowest offset that is free for all of its life.
  void commit();

  std::size_t offset_of(Block block) const;
  std::size_t bytes_of(Block block) const;
  /// Size of the arena; at least the peak of what is alive together.
  std::size_t total_bytes() const { return total_bytes_; }
  bool committed() const { return committed_; }

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
