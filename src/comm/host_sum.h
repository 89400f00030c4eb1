// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums ranges of float32 over ranks of one host along the shard tree, in memory that all of them see
// (host_memory.h). Nothing is sent: each rank owns a part of a range, adds the partials of all ranks there
// as it reads them, and the others copy its total. The bits are those of TreeReduction.
//
// A sum goes on in three stages, each of which a rank tells the others by a counter in its own segment:
//
//   offered   its partials of the range are complete
//   summed    the total of its part is in its result, and it reads no partials of others any more
//   taken     it has the totals of all parts, and reads no results of others any more
//
// start() only offers. The work is done when the other ranks are ready: in start() of later sums, and in
// finish(), which waits. So a rank that is early computes on, where an exchange of messages would wait.
//
// One thread. All ranks start the same sums in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/error_feedback.h"
#include "comm/host_memory.h"
#include "comm/tree.h"
#include "core/range.h"
#include "core/thread_pool.h"

namespace lockstep {

class HostSum {
 public:
  /// Collective. Each rank gets memory for its partials of `num_elements` each, at least for one: the result.
  /// `compress`: every node is rounded to bfloat16 (node_arithmetic.h). `pool` may be null; otherwise no call
  /// may come from inside pool->run(). Null on all ranks, with the reason, if the ranks are on several hosts
  /// or can't share memory.
  static std::unique_ptr<HostSum> create(Communicator& communicator, ThreadPool* pool, int shards,
                                         std::int64_t num_elements, bool compress, std::string& reason);

  /// TreeReduction::give_back_errors().
  void give_back_errors(ErrorFeedback& feedback) { feedback_ = &feedback; }
  /// TreeReduction::for_node_parts() of a sum.
  void for_node_parts(Range range, std::span<const std::int64_t> limits,
                      FunctionRef<void(const NodePart&)> then) const;

  /// num_elements floats, 64-byte aligned, initially zero.
  float* partial(int k) const { return input(plan_.first_input(rank_) + k); }
  /// The total; the same memory as partial(0) if that exists.
  float* result() const { return result_of(rank_); }

  /// This rank's partials of the range are complete. Without `limits` all ranks get the whole total;
  /// otherwise each gets that of its part, as in TreeReduction::reduce(). `what` and `limits` stay valid.
  void start(Range range, std::span<const std::int64_t> limits, const char* what);
  /// How many of the sums that were started since finish_all() have ended on this rank.
  int num_finished() const { return taken_; }
  /// Waits until `count` of them have.
  void finish(int count);
  /// Waits for all, and until no rank reads this rank's memory any more.
  void finish_all();

  /// Bytes that this rank reads from the memory of others for a sum.
  std::int64_t bytes_read(Range range, std::span<const std::int64_t> limits) const;
  std::size_t memory_bytes() const { return memory_->bytes(rank_); }

 private:
  struct Counters;
  struct Sum {
    Range range;
    std::span<const std::int64_t> limits;
    const char* what;
  };
  /// to = a + b, of partials (their number in the plan) or blocks of scratch memory.
  struct Step {
    int a, b, to;
    bool total;
    int middle;  ///< TreeStep::middle
  };
  enum class Stage { offered, summed, taken };

  HostSum(Communicator& communicator, ThreadPool* pool, int shards, std::int64_t num_elements, bool compress);
  void plan_steps();
  Counters& counters(int rank) const;
  float* input(int number) const;
  float* result_of(int rank) const;
  Range part(const Sum& sum, int rank) const;
  void tell(Stage stage, int sums);
  bool all_reached(Stage stage, int sums) const;
  bool advance();
  void add_own_part(const Sum& sum);
  void add_block(int thread, Range block);
  void add(float* to, const float* a, const float* b, Range elements, const Step& step) const;
  void take_other_parts(const Sum& sum);
  void in_parts(Range range, FunctionRef<void(int thread, Range)> work);

  Communicator& communicator_;
  ThreadPool* pool_;
  int rank_, shards_;
  bool compress_;
  ErrorFeedback* feedback_ = nullptr;
  std::int64_t stride_;  ///< elements from one partial to the next
  TreePlan plan_;        ///< all ranks' partials -> the total
  std::vector<int> rank_of_input_;
  std::vector<Step> steps_;
  int scratch_blocks_ = 0;
  std::vector<float> scratch_;
  std::unique_ptr<HostMemory> memory_;
  std::vector<Sum> sums_;       ///< since finish_all()
  int summed_ = 0, taken_ = 0;  ///< of sums_
  std::uint64_t before_ = 0;    ///< sums until finish_all()
};

}  // namespace lockstep
