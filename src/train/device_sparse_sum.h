// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// SparseSum for microshards whose rows lie in a device's memory. The device adds this rank's microshards up
// to the rank's nodes of the shard tree; for one rank that is the whole sum. Between ranks, the rows of the
// nodes pass through pinned host memory; only touched rows move. The total lies on the device, its count in
// host memory. The bits are the same as those of SparseSum.
//
// While the device works, it alone knows how many rows there are: launches and memory are sized by what the
// shapes allow, and nothing waits. One rank never needs the counts on the host, unless it asks for total().
// With several ranks, the caller waits for them between add() and download().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/sparse_sum.h"
#include "core/buffer.h"
#include "core/range.h"
#include "core/sparse_rows.h"
#include "core/thread_pool.h"
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
  /// A sum for a table of `table_rows` rows of `width` numbers; a microshard has up to `leaf_rows` rows. All
  /// ranks, with the same arguments.
  DeviceSparseSum(Place place, Communicator& communicator, ThreadPool& pool, int shards,
                  std::int64_t table_rows, std::int64_t width, std::int64_t leaf_rows);

  /// Where an own shard's rows are written before the next add(), which overwrites them. On the device.
  const SparseRows& leaf(int shard) const { return leaves_[static_cast<std::size_t>(shard - own_.first)]; }
  /// Sets the number of rows of all leaves to 0.
  void clear();

  /// Device memory that add() needs while its work runs.
  std::size_t workspace_bytes() const;
  /// Puts the sums of this rank's nodes into the stream, and with several ranks the copies of their counts to
  /// the host.
  void add(void* workspace);
  /// Called after the stream has finished add(): counts are known. With several ranks, puts the copies of the
  /// rows to the host into the stream.
  void download();
  /// Gathers, adds, and puts the copy of the total to the device into the stream; called with several ranks,
  /// on all of them, after the stream has finished download(). No allocation.
  void exchange(const char* what);
  /// Rows and values on the device, for work that enters the stream; the count in host memory. One rank waits
  /// for the stream once after each add(). Valid until the next add().
  const SparseRows& total();
  /// total() with the count on the device, for kernels.
  const SparseRows& total_on_device() const { return total_on_device_; }

  /// What this rank sent in the last exchange().
  std::int64_t bytes_sent() const { return host_ ? host_->bytes_sent() : 0; }
  /// Bytes on the device and on the host.
  std::size_t memory_bytes() const;

 private:
  struct Node {
    Subtree leaves;
    SparseRows sum;  ///< of one leaf: that leaf
  };
  struct Workspace;
  void download_counts();
  void add_node(const Node& node, const Workspace& workspace);

  Place place_;
  Range own_;
  std::int64_t table_rows_, width_, leaf_rows_;
  Buffer rows_, values_;          ///< of the leaves, one after the other
  Buffer sum_rows_, sum_values_;  ///< of nodes of more than one leaf
  Buffer total_rows_, total_values_;
  Buffer counts_;       ///< leaves, then nodes, then the total of several ranks
  Buffer host_counts_;  ///< the same, pinned
  std::vector<SparseRows> leaves_;
  std::vector<Node> nodes_;
  SparseRows total_, total_on_device_;
  bool count_known_ = true;        ///< host_counts_ has that of the last add()
  std::optional<SparseSum> host_;  ///< nothing for one rank
};

}  // namespace lockstep
