// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Small sums over shards that every rank needs at once: batch-norm statistics, loss, metrics, control flags.
//
// One allgather collects the ranks' partials; then every rank merges all of them along the tree. The result
// has the same bits on every rank and for every number of ranks. With groups, each group of consecutive
// shards has its own sum and tree over its own leaves. A group may span ranks, and a rank may have shards of
// several groups.
//
// The values may be in device memory. Then merging is work of the device's stream, and only the exchanged
// data pass through the host. With one rank, the host does not wait for the device.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/device_communicator.h"
#include "comm/tree.h"
#include "core/buffer.h"
#include "core/planned_merges.h"
#include "core/range.h"

namespace lockstep {

class SmallSum {
 public:
  /// into = into (+) right, over `width` doubles each; `into` is the left operand.
  using Merge = std::function<void(double* into, const double* right)>;
  /// Merges the partials at `in`, which are overwritten, and writes the results to `out`. On a device, adds
  /// this work to the stream.
  using MergeTree = std::function<void(const TreeMerges& tree, double* in, double* out)>;
  /// The device of the leaves, and the stream that fills, merges and reads them.
  struct Place {
    Device& device;
    void* stream;
    /// A communicator of the same ranks on `stream`: data do not pass through the host. Null: `communicator`
    /// is used.
    DeviceCommunicator* direct = nullptr;
    /// True: the totals of the groups are merged, too, one after another: whole().
    bool whole = false;
  };

  /// `shards` leaves in groups of `group`, `width` doubles each. `group` must divide `shards`; 0 means one
  /// group of all shards. Without `merge`, element-wise addition. All ranks, with the same arguments.
  SmallSum(Communicator& communicator, int shards, int group, int width, Merge merge = {});
  SmallSum(Communicator& communicator, int shards, int group, int width, MergeTree merge, Place place);

  /// The shards of this rank: [first, last).
  Range shards() const { return mine_; }
  int num_groups() const { return static_cast<int>(groups_.size()); }
  int width() const { return width_; }

  /// The caller fills `width` doubles for each own shard before each reduce(), which overwrites them.
  /// Different shards may be filled by different threads.
  double* leaf(int shard);

  /// All ranks. No allocation; with one rank no communication. `merged`: merge_group() has been called for
  /// every group that has own shards.
  void reduce(const char* what, bool merged = false);
  /// The three parts of reduce(): the sums within the rank, the exchange of all ranks, and the sums over
  /// ranks. On a device, the first and the last only add work to the stream, the same in each step.
  void merge_own(bool merged = false);
  void exchange(const char* what);
  void merge_all();

  /// Merges the leaves of a group whose shards are all on this rank, and returns the total, which is valid
  /// until reduce(). Threads may call it at the same time for different groups.
  const double* merge_group(int group_index);
  int group_size() const { return group_; }

  /// The total of a group: `width` doubles in the memory of the leaves' device. Valid until leaf() is written
  /// for the next reduce().
  const double* total(int group_index) const;
  /// The merged totals of all groups, if the Place asks for it; with one group, its total. Valid as total().
  const double* whole() const;

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
    PlannedMerges to_total;         // the leaves of a group that is on this rank -> its place in totals_
  };
  double* at(void* memory, int slot) const;
  void* gathered() const { return place_.device.is_host() ? gathered_.data() : gathered_on_device_; }
  void* leaves() const;
  void* partials() const;
  std::size_t partial_bytes() const;
  int add_leaves(PlannedMerges& plan, const Group& group) const;
  void plan_groups();
  void allocate_messages();
  void plan_sums();

  Communicator& communicator_;
  Place place_;
  int shards_, group_, width_, stride_;
  MergeTree merge_;
  Range mine_;
  std::vector<Group> groups_;
  int partials_per_rank_ = 0, rank_values_ = 0, message_ = 0;  // message_: doubles per message
  PlannedMerges own_;    // leaves_ -> partials(), or, with one rank, totals_
  PlannedMerges all_;    // gathered() -> totals_
  PlannedMerges whole_;  // within totals_
  Buffer leaves_;        // empty if no two leaves of this rank are merged
  Buffer sent_, gathered_;
  Buffer totals_;  // of each group; then, with several groups, two places for whole()
  // Copies of sent_ and gathered_, which are in host memory: of the device communicator, or in uploaded_.
  void *sent_on_device_ = nullptr, *gathered_on_device_ = nullptr;
  Buffer uploaded_, partials_;  // without a device communicator: gathered_ and the partials on the device
};

}  // namespace lockstep
