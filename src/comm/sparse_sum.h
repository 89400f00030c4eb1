// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sum of sparse rows over all shards, the same bits on every rank and for every number of ranks and
// threads: each row is summed along the shard tree over those microshards that have it. A number that is not
// there adds nothing, so the result is that of the dense sum (but for the sign of a zero).
//
// Each rank sums its own microshards, the ranks gather one another's rows, and each sums all of them: what
// moves is rows that were touched, not the table. Where microshards' rows lie on a device, the device sums a
// rank's own, as far as its nodes of the tree go, and this goes on from there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/tree.h"
#include "core/buffer.h"
#include "core/sparse_rows.h"
#include "core/thread_pool.h"

namespace lockstep {

class SparseSum {
 public:
  /// Of a table with `table_rows` rows of `width` numbers, in host memory. A microshard brings up to
  /// `leaf_rows` rows. All ranks, with the same arguments; `pool` helps adding.
  /// `device`, if not null, brings its own nodes' rows (own_rows() and so on) instead of leaves; they and the
  /// total lie in memory pinned for it.
  SparseSum(Communicator& communicator, ThreadPool& pool, int shards, std::int64_t table_rows,
            std::int64_t width, std::int64_t leaf_rows, Device* device = nullptr);

  /// Where an own shard's rows go, for the next reduce(), which uses up the memory. Different shards may be
  /// filled by different threads.
  const SparseRows& leaf(int shard) const { return leaves_[static_cast<std::size_t>(shard - own_.first)]; }
  /// No leaf has a row.
  void clear();
  /// All ranks, outside pool.run(). No allocation.
  void reduce(const char* what);

  /// Where a device's rows go, for the next reduce_nodes(), which uses up the memory: how many each node of
  /// maximal_subtrees() of the own shards has, and the rows and values of all of them, one behind the other.
  std::int64_t* own_counts() { return own_counts_.data(); }
  std::int32_t* own_rows() const { return own_rows_.as<std::int32_t>().data(); }
  float* own_values() const { return own_values_.as<float>().data(); }
  /// All ranks, more than one of them, outside pool.run(). No allocation.
  void reduce_nodes(const char* what);

  /// Valid until the next reduction.
  const SparseRows& total() const { return total_; }

  std::int64_t width() const { return width_; }
  /// What this rank sent in the last reduction.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  std::size_t memory_bytes() const;

 private:
  struct Input {
    Subtree node;
    std::int64_t count = 0;
    const std::int32_t* rows = nullptr;
    float* values = nullptr;  ///< is overwritten
  };
  void combine(std::span<const Input> inputs, Subtree node, const SparseRows& out);
  void sort_entries(std::span<const Input> inputs);
  float* sum_row(std::span<const Input> inputs, std::int64_t begin, std::int64_t end, Subtree node) const;
  void exchange(const char* what);

  Communicator& communicator_;
  ThreadPool& pool_;
  int shards_;
  std::int64_t table_rows_, width_, leaf_rows_;
  Range own_;
  std::vector<Subtree> own_nodes_;               ///< maximal subtrees of the own shards
  std::vector<std::vector<Subtree>> all_nodes_;  ///< of every rank
  std::size_t most_nodes_ = 0;                   ///< of one rank
  std::vector<SparseRows> leaves_;
  SparseRows total_;
  Buffer leaf_memory_, leaf_counts_, own_rows_, own_values_, all_rows_, all_values_, total_memory_;
  std::vector<std::int64_t> own_counts_, all_counts_;
  std::vector<Input> inputs_;
  // Of the entries of combine(), in order of rows, then inputs.
  std::vector<std::uint64_t> keys_, other_keys_;
  std::vector<float*> addresses_;
  std::vector<std::int64_t> run_ends_, starts_, cursors_;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace lockstep
