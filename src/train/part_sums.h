// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sum of a step's gradients over its parts, which arrive in any order: added along the tree over the
// parts (comm/tree.h), each as soon as its neighbour is there. So the sum has the bits of one over all
// microshards, whoever computed which part, and whenever. Memory of merged parts is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/node_arithmetic.h"
#include "comm/tree.h"
#include "core/buffer.h"
#include "core/thread_pool.h"

namespace lockstep {

/// Memory for gradients of one size, each behind a header of kHeaderBytes.
class PartBuffers {
 public:
  static constexpr std::size_t kHeaderBytes = 64;

  explicit PartBuffers(std::int64_t elements) : elements_(elements) {}
  std::int64_t elements() const { return elements_; }
  std::size_t bytes() const { return kHeaderBytes + static_cast<std::size_t>(elements_) * sizeof(float); }
  Buffer take();
  void give_back(Buffer buffer) { free_.push_back(std::move(buffer)); }
  static float* values(const Buffer& buffer) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(buffer.data()) + kHeaderBytes);
  }

 private:
  std::int64_t elements_;
  std::vector<Buffer> free_;
};

class PartSums {
 public:
  /// Sums of `parts` parts. `all`: a sum has all parts, and they merge as they come; otherwise close() says
  /// which. References outlive the object.
  PartSums(int parts, bool all, PartBuffers& buffers, const NodeArithmetic& arithmetic, ThreadPool& pool);

  /// A step begins.
  void clear();
  /// The gradient of a part, and what it merges with. Each part once.
  void add(int part, Buffer gradient);
  int added() const { return added_; }
  bool has(int part) const { return there_[static_cast<std::size_t>(part)] != 0; }
  /// Adds the parts that are not 0 in `kept`, which are there, along the tree without the others. Not with
  /// `all`.
  void close(std::span<const char> kept);
  /// The sum, after the last part or close().
  const float* total() const;

 private:
  /// Adds nodes whose halves are complete; `absent`: parts that are not there will not come.
  void merge(bool absent);

  const bool all_;
  PartBuffers& buffers_;
  const NodeArithmetic& arithmetic_;
  ThreadPool& pool_;
  TreePlan plan_;
  std::vector<Buffer> slots_;  ///< by part: the sum of the node that it leads; empty: none
  std::vector<char> there_;    ///< by part: it was added
  std::vector<char> done_;     ///< by step of the plan
  std::vector<char> blocked_;  ///< by part: an earlier step of the plan waits
  int added_ = 0;
};

}  // namespace lockstep
