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
//
// A compressed reduction rounds every node of the tree to bfloat16 (node_arithmetic.h), so partials and
// totals travel as 16 bits. What gather() sends alone is no sum, and travels as it is.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/error_feedback.h"
#include "comm/node_arithmetic.h"
#include "comm/tree.h"
#include "core/buffer.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "core/thread_pool.h"

namespace lockstep {

class TreeReduction {
 public:
  /// The device of the data, if it is not the host. The communicator is then a DeviceCommunicator, and sum()
  /// only adds work to its stream. The arithmetic outlives the reduction.
  struct Place {
    Device& device;
    void* stream;
    const NodeArithmetic& arithmetic;
  };

  /// `largest_count`: the largest count of one sum(). Large transfers are split into pieces of `piece_bytes`,
  /// so that the addition of one piece overlaps the transfer of the next. `pool` may be null; otherwise sum()
  /// must not be called inside pool->run().
  TreeReduction(Communicator& communicator, ThreadPool* pool, int shards, std::int64_t largest_count,
                std::size_t piece_bytes, bool compress);
  /// A reduction on a device, which exchanges whole parts at once.
  TreeReduction(Communicator& communicator, int shards, std::int64_t largest_count, bool compress,
                Place place);

  /// Gives each node of a compressed reduction on the host its residual; partials are rounded already. Called
  /// before the first sum. It outlives the reduction.
  void give_back_errors(ErrorFeedback& feedback) { feedback_ = &feedback; }

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
  /// The ranks that a rank exchanges messages with.
  static std::vector<int> peers_of(int rank, int ranks, int shards);
  /// Whether the balanced algorithm fits.
  static bool is_balanced(int ranks, int shards);

  /// Who adds which nodes above the ranks' partials in sum() and in reduce(), if errors are given back: each
  /// element of a node once.
  void for_node_parts(std::int64_t offset, std::int64_t count, FunctionRef<void(const NodePart&)> then) const;
  void for_node_parts(std::span<const std::int64_t> limits, FunctionRef<void(const NodePart&)> then) const;

  bool balanced() const { return balanced_; }
  /// Messages are received into them, and compressed ones sent from them.
  std::array<const Buffer*, 3> scratch() const { return {&scratch_, &narrow_out_, &narrow_in_}; }
  std::size_t scratch_bytes() const {
    return scratch_.size_bytes() + narrow_out_.size_bytes() + narrow_in_.size_bytes();
  }
  /// Bytes that this rank sends for a sum of `count` elements.
  std::int64_t bytes_sent(std::int64_t count) const;
  /// Bytes that this rank sends for reduce() and for gather().
  std::int64_t bytes_reduced(std::span<const std::int64_t> limits) const;
  std::int64_t bytes_gathered(std::span<const std::int64_t> limits) const;

  /// The largest count for which every rank adds all partials itself (recursive doubling): fewer but larger
  /// messages.
  static constexpr std::int64_t kSmallCount = 4096;
  /// Elements of a cache line: ranges are cut at its multiples.
  static constexpr std::int64_t kGrain = 16;

 private:
  /// One exchange of recursive halving and doubling: what the rank keeps, and the rest, which is the
  /// peer's. `middle`: TreeStep::middle of the node that both add.
  struct Level {
    int peer;
    Range keep, give;
    int middle;
  };
  /// A node that is added, from its element `first`.
  struct Node {
    bool total;
    int middle;
    std::int64_t first;
  };
  using Levels = std::vector<Level>;
  using ChunkOf = FunctionRef<Range(int rank)>;

  void halve(float* data, const Levels& levels, const char* what);
  void halve_compressed(float* data, const Level& level, bool last, const char* what);
  void redouble(float* data, const Levels& levels, bool compressed, const char* what);
  void redouble_compressed(float* data, const Level& level, const char* what);
  void levels_within(int rank, Range range, Levels& levels) const;
  void levels_between(int rank, std::span<const std::int64_t> limits, Levels& levels) const;
  int middle_of(int rank, int distance) const;
  Range chunk_of_sum(int rank, std::int64_t offset, std::int64_t count, std::int64_t done) const;
  Range chunk_of_part(int rank, std::span<const std::int64_t> limits, std::int64_t done) const;
  void sum_balanced_small(float* data, std::int64_t count, const char* what);
  void reduce_chunks(std::span<float* const> partials, float* result, ChunkOf chunk, const char* what);
  void exchange_partials(std::span<float* const> partials, ChunkOf chunk,
                         FunctionRef<float*(int input)> place, int first, const char* what);
  void send_chunks(float* data, ChunkOf chunk, bool compressed, const char* what);
  void add(float* into, const float* from, std::int64_t count, const Node& node);
  void add(float* into, const BFloat16* from, std::int64_t count, const Node& node);
  void narrow(const float* from, BFloat16* to, std::int64_t count);
  void widen(const BFloat16* from, float* to, std::int64_t count);
  void in_parts(std::int64_t count, FunctionRef<void(Range)> work);
  std::int64_t sent_element_bytes() const { return compress_ ? sizeof(BFloat16) : sizeof(float); }
  BFloat16* out_at(std::int64_t element) { return narrow_out_.as<BFloat16>().data() + element; }
  BFloat16* in_at(std::int64_t element) { return narrow_in_.as<BFloat16>().data() + element; }
  std::int64_t halved(std::int64_t count) const;
  Range own_part(std::span<const std::int64_t> limits) const;

  TreeReduction(Communicator& communicator, ThreadPool* pool, int shards, std::int64_t largest_count,
                std::size_t piece_bytes, bool compress, Place place);

  Communicator& communicator_;
  ThreadPool* pool_;
  Place place_;
  TreePlan plan_;  // all ranks' partials -> the total
  int shards_;
  bool compress_, balanced_;
  ErrorFeedback* feedback_ = nullptr;
  std::size_t piece_bytes_;
  std::int64_t chunk_count_ = 0;   // general: most elements of one rank's chunk of a block
  std::int64_t narrow_count_ = 0;  // balanced: elements that are narrowed at a time
  Buffer scratch_;
  Buffer narrow_out_, narrow_in_;  // compressed: what is sent, and what has arrived
  std::vector<OutMessage> out_;
  std::vector<InMessage> in_;
  Levels levels_;
};

}  // namespace lockstep
