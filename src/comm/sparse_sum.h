// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums sparse rows over all shards, with the same bits on every rank and for every number of ranks and
// threads. Each row is summed along the shard tree over the microshards that contain it. Absent rows add
// nothing, so the result equals the dense sum, except for the sign of a zero.
//
// Each rank sums its own microshards, the ranks gather each other's rows, and each rank sums all of them. The
// traffic is proportional to the touched rows, not to the table. If the rows of the microshards are on a
// device, the device computes the sums of the rank's own tree nodes, and this class continues from there.
//
// A compressed sum rounds the values of a row at every node of the tree, as a compressed dense sum does
// (node_arithmetic.h), and ranks send values of 16 bits. The rounding of a node that has the row from one
// microshard changes nothing more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/tree.h"
#include "core/buffer.h"
#include "core/range.h"
#include "core/sparse_rows.h"
#include "core/thread_pool.h"

namespace lockstep {

class SparseSum {
 public:
  /// Sums for a table of `table_rows` rows of `width` floats, in host memory. Each microshard has up to
  /// `leaf_rows` rows. All ranks, with the same arguments. `pool` helps with additions.
  ///
  /// If `device` is not null, which does not go with `compress`, it provides the rows of the rank's own nodes
  /// (own_rows() and the following functions) instead of leaves; these rows and the total are in memory
  /// pinned for the device.
  SparseSum(Communicator& communicator, ThreadPool& pool, int shards, std::int64_t table_rows,
            std::int64_t width, std::int64_t leaf_rows, bool compress = false, Device* device = nullptr);

  /// The rows of one of this rank's shards for the next reduce(), which overwrites the memory. Different
  /// threads may fill different shards.
  const SparseRows& leaf(int shard) const { return leaves_[static_cast<std::size_t>(shard - own_.first)]; }
  /// Sets all leaves to zero rows.
  void clear();
  /// All ranks, outside pool.run(). No allocation.
  void reduce(const char* what);

  /// The rows from a device for the next reduce_nodes(), which overwrites the memory: the number of rows of
  /// each node of maximal_subtrees() of this rank's shards, and the concatenated rows and values of all
  /// nodes.
  std::int64_t* own_counts() { return own_counts_.data(); }
  std::int32_t* own_rows() const { return own_rows_.as<std::int32_t>().data(); }
  float* own_values() const { return own_values_.as<float>().data(); }
  /// All ranks, at least two, outside pool.run(). No allocation.
  void reduce_nodes(const char* what);

  /// The total. Valid until the next reduction.
  const SparseRows& total() const { return total_; }

  std::int64_t width() const { return width_; }
  /// Bytes that this rank sent in the last reduction.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  std::size_t memory_bytes() const;

 private:
  struct Input {
    Subtree node;
    std::int64_t count = 0;
    const std::int32_t* rows = nullptr;
    float* values = nullptr;  ///< overwritten
  };
  void combine(std::span<const Input> inputs, Subtree node, const SparseRows& out);
  void sort_entries(std::span<const Input> inputs);
  float* sum_row(std::span<const Input> inputs, std::int64_t begin, std::int64_t end, Subtree node) const;
  void exchange(const char* what);
  void gather_values(std::int64_t count, const char* what);

  Communicator& communicator_;
  ThreadPool& pool_;
  int shards_;
  std::int64_t table_rows_, width_, leaf_rows_;
  bool compress_;
  Range own_;
  std::vector<Subtree> own_nodes_;               ///< maximal subtrees of this rank's shards
  std::vector<std::vector<Subtree>> all_nodes_;  ///< the same for every rank
  std::size_t most_nodes_ = 0;                   ///< largest number of nodes of a rank
  std::vector<SparseRows> leaves_;
  SparseRows total_;
  Buffer leaf_memory_, leaf_counts_, own_rows_, own_values_, all_rows_, all_values_, total_memory_;
  Buffer own_narrow_, all_narrow_;  ///< compressed: values on their way
  std::vector<std::int64_t> own_counts_, all_counts_;
  std::vector<Input> inputs_;
  // Of the entries of combine(), ordered by row, then by input.
  std::vector<std::uint64_t> keys_, other_keys_;
  std::vector<float*> addresses_;
  std::vector<std::int64_t> run_ends_, starts_, cursors_;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace lockstep
