// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Small sums over shards that every rank needs at once: batch-norm statistics, loss, metrics, control words.
//
// One allgather of the ranks' partials, then every rank merges all of them along the tree: the same bits on
// every rank and for every number of ranks. With groups, each group of consecutive shards has a sum and a
// tree of its own, over its own leaves; groups may lie across ranks, and ranks across groups.
//
// The numbers may lie on a device: then merging is work of its stream, and only what the ranks exchange
// passes through the host. With one rank nothing waits for the device.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/device_communicator.h"
#include "comm/tree.h"
#include "core/buffer.h"

namespace lockstep {

class SmallSum {
 public:
  /// into = into (+) right, over `width` doubles each; `into` is the left operand. On a device: puts that
  /// into the stream.
  using Merge = std::function<void(double* into, const double* right)>;
  /// Where the leaves lie, and the stream that fills, merges and reads them.
  struct Place {
    Device& device;
    void* stream;
    /// Of the same ranks, on `stream`: then nothing passes through the host. Null: through `communicator`.
    DeviceCommunicator* direct = nullptr;
  };

  /// `shards` leaves in groups of `group` (0: one group of all; else shards % group == 0), `width` doubles
  /// each. Without `merge`, element-wise addition. All ranks, with the same arguments.
  SmallSum(Communicator& communicator, int shards, int group, int width, Merge merge = {});
  SmallSum(Communicator& communicator, int shards, int group, int width, Merge merge, Place place);

  /// The shards of this rank: [first, last).
  Range shards() const { return mine_; }
  int num_groups() const { return static_cast<int>(groups_.size()); }
  int group_of_shard(int shard) const { return shard / group_; }
  int width() const { return width_; }

  /// The caller fills `width` doubles for each own shard before each reduce(), which overwrites them.
  /// Different shards may be filled by different threads.
  double* leaf(int shard);

  /// All ranks. No allocation; with one rank no communication.
  void reduce(const char* what);

  /// `width` doubles where the leaves lie, valid until leaf() is written for the next reduce().
  const double* total(int group_index) const;

  /// Adds `count` doubles per rank to each reduce(). They are gathered from all ranks but not summed: control
  /// flags, times. All ranks call it with the same `count`, before a reduce(). Allocates.
  void set_rank_values(int count);
  /// This rank's values: initially zero, and kept until the caller changes them.
  std::span<double> rank_values();
  /// The values of `rank` as of the last reduce().
  std::span<const double> rank_values_of(int rank) const;

 private:
  struct Group {
    TreePlan local;                 // this rank's leaves of the group -> its partials
    int first_leaf = 0;             // slot of the first own leaf in leaves_
    TreePlan global;                // all ranks' partials -> the total
    std::vector<int> ranks, slots;  // input of `global` -> whose partial, and which of that rank's
  };
  double* at(const Buffer& buffer, int slot) const;
  double* gathered(const Group& group, int input) const;
  const Buffer& merged() const { return place_.device.is_host() ? gathered_ : gathered_on_device_; }
  void allocate_messages();
  void exchange(const char* what);
  void merge(double* into, const double* right) const;

  Communicator& communicator_;
  Place place_;
  int group_, width_, stride_;
  Merge merge_;
  Range mine_;
  std::vector<Group> groups_;
  int partials_per_rank_ = 0, rank_values_ = 0, message_ = 0;  // message_: doubles that a rank sends
  Buffer leaves_, sent_, gathered_;
  Buffer sent_on_device_, gathered_on_device_;  ///< as sent_ and gathered_, which are in host memory
};

}  // namespace lockstep
