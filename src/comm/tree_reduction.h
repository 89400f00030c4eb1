// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums a range of float32 over all ranks along the shard tree with point-to-point messages. The result has
// the same bits on every rank and for every number of ranks.
//
// Each rank contributes the partials of the maximal subtrees of its shards. There are two algorithms:
//
//   - balanced: R is a power of two, and each aligned group of 1, 2, 4, ... ranks owns one subtree. Recursive
//     halving with the nearest neighbour first then computes the upper part of the tree, and recursive
//     doubling distributes the chunks (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005). Each rank sends 2
//     (R-1)/R of the range.
//   - general: for any other (R, G). Each rank owns one chunk of the range, receives all partials of it, adds
//     them along the tree and sends the sum to all ranks.
//
// Either has two halves, which can be called apart with something between them: reduce() leaves the sum of
// each part on the rank that owns it, gather() sends the parts of all ranks to all ranks (ownership.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/tree.h"
#include "core/buffer.h"
#include "core/function_ref.h"
#include "core/thread_pool.h"

namespace lockstep {

class TreeReduction {
 public:
  /// The device of the data, if it is not the host. The communicator is then a DeviceCommunicator, sum() only
  /// adds work to its stream, and `add` adds `from` to `into` in that stream.
  struct Place {
    Device& device;
    void* stream;
    std::function<void(float* into, const float* from, std::int64_t count)> add;
  };

  /// `largest_count`: the largest count of one sum(). Large transfers are split into pieces of `piece_bytes`,
  /// so that the addition of one piece overlaps the transfer of the next. `pool` may be null; otherwise sum()
  /// must not be called inside pool->run().
  TreeReduction(Communicator& communicator, ThreadPool* pool, int shards, std::int64_t largest_count,
                std::size_t piece_bytes);
  TreeReduction(Communicator& communicator, int shards, std::int64_t largest_count, std::size_t piece_bytes,
                Place place);

  /// All ranks. `partials[k] + offset` holds `count` elements of this rank's k-th maximal subtree. Writes the
  /// total to `result + offset`. If this rank has partials, `result` must be partials[0]. The partials are
  /// overwritten.
  void sum(std::span<float* const> partials, float* result, std::int64_t offset, std::int64_t count,
           const char* what);

  /// The first half of sum() with given parts: `limits` has size() + 1 elements, and rank r gets the total of
  /// [limits[p], limits[p + 1]) in `result`, p = position_of(r). The rest of `result` is undefined. All
  /// ranks.
  void reduce(std::span<float* const> partials, float* result, std::span<const std::int64_t> limits,
              const char* what);
  /// The second half: the parts of `data` that other ranks own come from them. All ranks.
  void gather(float* data, std::span<const std::int64_t> limits, const char* what);
  /// The number of the part that belongs to a rank.
  static int position_of(int rank, int ranks, int shards);

  bool balanced() const { return balanced_; }
  std::size_t scratch_bytes() const { return scratch_.size_bytes(); }
  /// Bytes that this rank sends for a sum of `count` elements.
  std::int64_t bytes_sent(std::int64_t count) const;
  /// The same for reduce() and gather().
  std::int64_t bytes_reduced(std::span<const std::int64_t> limits) const;
  std::int64_t bytes_gathered(std::span<const std::int64_t> limits) const;

  /// Up to this count every rank adds all partials itself (recursive doubling): fewer but larger messages.
  static constexpr std::int64_t kSmallCount = 4096;

 private:
  /// One exchange of recursive halving and doubling: what this rank keeps, and the rest, which is the
  /// peer's.
  struct Level {
    int peer;
    Range keep, give;
  };
  using Levels = std::vector<Level>;
  using ChunkOf = FunctionRef<Range(int rank)>;

  void halve(float* data, const Levels& levels, const char* what);
  void redouble(float* data, const Levels& levels, const char* what);
  const Levels& levels_within(std::int64_t count);
  const Levels& levels_between(std::span<const std::int64_t> limits);
  void sum_balanced_small(float* data, std::int64_t count, const char* what);
  void reduce_chunks(std::span<float* const> partials, float* result, ChunkOf chunk, const char* what);
  void send_chunks(float* data, ChunkOf chunk, const char* what);
  void add(float* into, const float* from, std::int64_t count);
  std::int64_t halved(std::int64_t count) const;
  Range own_part(std::span<const std::int64_t> limits) const;

  TreeReduction(Communicator& communicator, ThreadPool* pool, int shards, std::int64_t largest_count,
                std::size_t piece_bytes, Place place);

  Communicator& communicator_;
  ThreadPool* pool_;
  Place place_;
  TreePlan plan_;  // all ranks' partials -> the total
  int shards_;
  bool balanced_;
  std::size_t piece_bytes_;
  std::int64_t chunk_count_ = 0;  // general: most elements of one rank's chunk of a block
  Buffer scratch_;
  std::vector<OutMessage> out_;
  std::vector<InMessage> in_;
  Levels levels_;
};

}  // namespace lockstep
