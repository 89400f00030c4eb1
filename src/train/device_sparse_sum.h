// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// SparseSum where microshards' rows lie in a device's memory. The device adds this rank's microshards along
// the shard tree, as far as the rank's nodes of it go; for one rank that is the whole sum. Between ranks the
// nodes' rows pass through pinned host memory: what moves is rows that were touched. The total lies on the
// device, its count in host memory. The same bits as SparseSum's.
//
// How many rows there are the device alone knows while it works: launches and memory are sized by what shapes
// allow, and nothing waits. The count is waited for between add() and download().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/sparse_sum.h"
#include "core/buffer.h"
#include "core/sparse_rows.h"
#include "kernels/kernel_table.h"

namespace lockstep {

class DeviceSparseSum {
 public:
  /// All work enters this stream, which also writes the leaves and reads the total.
  struct Place {
    const KernelTable& kernels;
    Device& device;
    void* stream;
  };
  /// Of a table with `table_rows` rows of `width` numbers; a microshard brings up to `leaf_rows` rows. All
  /// ranks, with the same arguments.
  DeviceSparseSum(Place place, Communicator& communicator, ThreadPool& pool, int shards,
                  std::int64_t table_rows, std::int64_t width, std::int64_t leaf_rows);

  /// Where an own shard's rows go, for the next add(), which uses up the memory. All of it on the device.
  const SparseRows& leaf(int shard) const { return leaves_[static_cast<std::size_t>(shard - own_.first)]; }
  /// No leaf has a row.
  void clear();

  /// What add() needs, of the device's memory; nothing outlives the call's work.
  std::size_t workspace_bytes() const;
  /// Puts the sums of this rank's nodes into the stream, and their counts' way to the host.
  void add(void* workspace);
  /// With the stream at its end: counts are known. On several ranks puts the rows' way to the host into the
  /// stream.
  void download();
  /// On several ranks, all of them, with the stream at its end again: gathers, adds, and puts the total's way
  /// back into the stream. No allocation.
  void exchange(const char* what);
  /// Rows and values on the device, for what enters the stream; the count in host memory. Until the next
  /// add().
  const SparseRows& total() const { return total_; }
  /// The same with the count on the device, for kernels.
  const SparseRows& total_on_device() const { return total_on_device_; }

  /// What this rank sent in the last exchange().
  std::int64_t bytes_sent() const { return host_ ? host_->bytes_sent() : 0; }
  /// On the device and on the host.
  std::size_t memory_bytes() const;

 private:
  struct Node {
    Subtree leaves;
    SparseRows sum;  ///< of one leaf: that leaf
  };
  struct Workspace;
  void add_node(const Node& node, const Workspace& workspace);

  Place place_;
  Range own_;
  std::int64_t table_rows_, width_, leaf_rows_;
  Buffer rows_, values_;          ///< of the leaves, one behind the other
  Buffer sum_rows_, sum_values_;  ///< of nodes of more than one leaf
  Buffer total_rows_, total_values_;
  Buffer counts_;       ///< leaves, then nodes, then the total of several ranks
  Buffer host_counts_;  ///< the same, pinned
  std::vector<SparseRows> leaves_;
  std::vector<Node> nodes_;
  SparseRows total_, total_on_device_;
  std::optional<SparseSum> host_;  ///< nothing for one rank
};

}  // namespace lockstep
