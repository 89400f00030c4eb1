// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The schedule of one rank's pass over a batch. Pure arithmetic: it runs nothing, and knows no tensors.
//
// A plan is a list of phases. A phase is a list of actions that each worker carries out for its microshards,
// one microshard after the other, which keeps a microshard in cache. A worker is a thread on the CPU, and a
// branch of the step on a device (train/branches.h). All workers finish a phase before the next one begins.
// Phases end where something other than a microshard's own work is due:
//
//   a synchronisation point   microshards of all ranks exchange sums at a collective layer (training only);
//                             all microshards of a rank are then in flight at the same time
//   a complete bucket         the sum of its gradients over ranks begins during the backward pass
//   the loss, on a device     the host then waits for the loss only, while the backward pass goes on
//
// Where batch norms take the statistics of groups of microshards, and each worker has whole groups, nothing
// crosses workers: each worker carries out all phases for one group after the other.
//
// Without synchronisation points, each worker has one microshard in flight. There the cuts of the last two
// kinds concern each worker's last microshard only: a gradient is complete when the last microshard has added
// its part. The other microshards run before, in one phase.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/range.h"
#include "model/graph.h"

namespace lockstep {

/// The flat range of the gradients of an operation's own trainable variables, without sparse ones.
struct GradientRange {
  Range range{0, 0};
  std::vector<Range> gaps;  ///< alignment gaps in it, which are kept at zero
};
/// The ranges of gradients by operation.
std::vector<GradientRange> gradient_ranges(const Graph& graph, const Graph::Calls& calls,
                                           const VariableStore& variables);

class ExecutionPlan {
 public:
  struct Spec {
    const Graph::Calls& calls;
    std::span<const GradientRange> gradients;  ///< by operation
    bool training = false;
    bool on_device = false;  ///< work enters a device's stream, and may be recorded
    int shards = 1;          ///< microshards of a global batch
    Range own{0, 1};         ///< those of this rank
    int workers = 1;
    std::span<const Range> buckets = {};  ///< training: consecutive, in the order of the flat gradients
    bool overlap = false;  ///< buckets start, and perhaps their update, during the backward pass
  };
  /// `spec` is used by the constructor only.
  explicit ExecutionPlan(const Spec& spec);

  enum class Act {
    fetch,           ///< samples into the slot
    forward_local,   ///< a collective layer's first pass
    forward,         ///< an operation's forward pass
    loss,            ///< all heads, and the gradients of their losses
    recompute,       ///< an operation's forward pass once more (model/recomputation.h)
    backward_local,  ///< a collective layer's first backward pass
    backward,        ///< an operation's backward pass
    no_gradient,     ///< zeros, for variables to which no gradient comes
  };
  struct Action {
    Act act;
    int operation = -1;  ///< -1 for fetch and loss
  };
  /// Which of a worker's microshards run a phase.
  enum class Which { all, all_but_last, last };
  struct Phase {
    std::vector<Action> actions;
    Which which = Which::all;
    Range gradients{0, 0};    ///< flat range that its actions write
    std::vector<Range> gaps;  ///< alignment gaps in it
    std::int64_t base = 0;    ///< the flat element that the gradients' scratch begins with
    Range buckets{0, 0};      ///< numbers of the buckets that are complete after it
    int sync = -1;            ///< operation of the synchronisation point after it; -1: none
    bool sync_backward = false;
    bool first = false;  ///< its microshards begin here
    bool computes_loss = false;
    bool losses_known = false;  ///< after it, the losses of all microshards
    /// Flat gradients before this element are complete after the phase, and no later one reads the values of
    /// their variables, so that they may be updated once the sum over ranks is there.
    std::int64_t released = 0;

    /// The flat range whose gradients are complete in all of the rank's microshards after the phase.
    Range completed() const { return which == Which::all_but_last ? Range{0, 0} : gradients; }
  };
  std::span<const Phase> phases() const { return phases_; }
  /// The phases of training up to the last synchronisation point of the forward pass, after which all
  /// collective layers have the totals of the batch. Empty if there is none. No loss, and no gradients.
  std::span<const Phase> forward_totals() const;

  /// The microshards that a worker runs in a phase: [first, last) of the global batch.
  Range microshards(int worker, Which which) const;
  /// Microshards of this rank: [first, last).
  Range own() const { return own_; }
  int workers() const { return workers_; }
  /// All own microshards are in flight at the same time.
  bool synchronises() const { return synchronises_ && unit_ == 0; }
  /// Microshards that a worker carries through all phases together, because they share statistics; 0: phases
  /// are for all workers. With them, workers run the phases alone, and then follow the sums of all phases and
  /// the exchange of all synchronisation points, in order.
  int unit() const { return unit_; }
  /// Microshards in flight.
  int num_slots() const {
    return synchronises() ? static_cast<int>(own_.size()) : workers_ * std::max(unit_, 1);
  }
  int slot(int worker, int shard) const {
    if (synchronises()) return shard - static_cast<int>(own_.first);
    return unit_ == 0 ? worker : worker * unit_ + shard % unit_;
  }
  /// The microshards of all workers.
  std::vector<Range> microshards_of_workers() const;
  /// Gradient elements of the largest phase, from its base.
  std::int64_t scratch_elements() const { return scratch_elements_; }

 private:
  void add_forward(const Spec& spec);
  void add_backward(const Spec& spec);
  void choose_unit(const Spec& spec);
  void cut_after_loss();
  void cut_last_microshard(const Spec& spec);
  void assign_buckets(std::span<const Range> buckets);
  void release_variables(const Spec& spec);

  std::vector<Phase> phases_;
  Range own_;
  int workers_;
  bool synchronises_ = false;
  int unit_ = 0;
  std::int64_t scratch_elements_ = 0;
};

}  // namespace lockstep
