// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the graph on this rank's microshards: forward for evaluation, forward and backward for training. The
// layers see one microshard at a time; at a collective layer all microshards of all ranks meet (SmallSum
// along the tree).
//
// A phase is what lies between two meetings: each thread runs a whole phase for one of its microshards after
// the other, which keeps it in cache. Without meetings there is one phase, and the activations of only as
// many microshards as there are threads are alive. Nothing is allocated in run().
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/small_sum.h"
#include "core/buffer.h"
#include "core/function_ref.h"
#include "core/thread_pool.h"
#include "model/graph.h"
#include "model/heads.h"
#include "model/memory_plan.h"
#include "train/gradient_accumulator.h"
#include "train/input_stage.h"
#include "train/loss_stage.h"
#include "train/sparse_gradients.h"
#include "train/step_graphs.h"
#include "train/step_observer.h"

namespace lockstep {

/// What the executor runs on: made once per process, shared by the modes. All references outlive it.
struct ExecutorContext {
  Graph& graph;
  VariableStore& variables;
  const Heads& heads;
  const KernelTable& kernels;
  Device& device;
  ThreadPool& pool;
  std::span<Lane> lanes;   ///< one per thread, each with its stream; grow_scratch() was called after prepare
  Communicator& meetings;  ///< for batch norm; its own duplicate
  /// Of the same ranks, on the first lane's stream; null: meetings pass through the host.
  DeviceCommunicator* direct_meetings;
  int shards;
  std::uint64_t seed;
};

/// One microshard's samples, as the batch has them.
struct Microshard {
  int shard;
  std::int64_t first_sample;  ///< position in the global batch
  std::int64_t n;
};

/// What the heads of a microshard have got.
struct MicroshardOutputs {
  const Microshard& microshard;
  const Lane& lane;
  std::span<const float* const> outputs;  ///< by head, on the device
  const LabelBlock& labels;               ///< of all heads, in host memory (Heads::labels_of)
};

/// One global batch, from this rank's point of view.
struct BatchView {
  /// Names the batch for prefetch(); -1: it is never prefetched.
  std::int64_t ticket = -1;
  std::int64_t step = 0;
  std::int64_t count = 0;  ///< samples of the whole global batch
  /// The microshard's extent; called for own shards.
  FunctionRef<Microshard(int shard)> extent;
  /// Fills features (n samples, in host memory) and returns the labels; runs on a lane. The labels must live
  /// until the loss of this microshard: `slot` (< num_slots()) numbers a buffer for them.
  FunctionRef<Labels(const Microshard&, int lane, int slot, float* features)> fetch;
  /// Takes every own microshard's sums by head (also of empty ones), in order, on the calling thread.
  FunctionRef<void(const Microshard&, std::span<const HeadSums>)> done;
  /// If there is one: puts work on a microshard's outputs into the lane's stream. Not called for empty ones.
  using Outputs = FunctionRef<void(const MicroshardOutputs&)>;
  std::optional<Outputs> outputs = {};
  /// The labels that fetch() returns, alone; if there is none, fetch() is called twice where they are counted
  /// ahead.
  using LabelsAlone = FunctionRef<Labels(const Microshard&, int lane, int slot)>;
  std::optional<LabelsAlone> labels = {};
};

class Executor {
 public:
  /// Prepares the layers for the microshard sizes `sample_counts` and plans memory. Collective only in
  /// training (each meeting has its own buffers, no communication yet).
  Executor(ExecutorContext context, bool training, std::span<const std::int64_t> sample_counts);
  ~Executor();

  /// After all executors are made: scratch that every lane needs.
  std::size_t scratch_bytes() const;
  /// Evaluation: forward and loss. No communication.
  void run(const BatchView& batch);
  /// Training: forward, loss / count, backward; starts every bucket of the reducer when it is complete. All
  /// ranks. A device may still be at the backward pass when this returns. `next`, if not null, is the batch
  /// that comes next: its samples are fetched while the device computes.
  void train(const BatchView& batch, GradientReducer& reducer, const BatchView* next = nullptr);
  /// For training, once: where gradients are summed; `sparse` (may be null) those of the sparse tables.
  void attach(GradientReducer& reducer, SparseGradients* sparse = nullptr);

  /// From the next train() on gradients are those of the loss times this.
  void set_loss_scale(double scale) { loss_->set_scale(scale); }
  /// From the next train() on; null: none. It outlives that.
  void observe(StepObserver* observer) { observer_ = observer; }
  /// What is called in a step, after fusion.
  const Graph::Calls& calls() const { return calls_; }
  /// Weights changed: layers repack theirs.
  void refresh_weights();
  /// Activations of all microshards in flight.
  std::size_t activation_bytes() const;
  /// Bytes of one microshard's arena.
  std::size_t arena_bytes() const { return plan_.total_bytes(); }
  std::size_t accumulator_bytes() const { return accumulator_ ? accumulator_->memory_bytes() : 0; }
  /// Microshards in flight at one time.
  int num_slots() const;

 private:
  enum class Act { fetch, forward, forward_local, loss, backward_local, backward, no_gradient };
  struct Action {
    Act act;
    int operation;
  };
  /// Which of a thread's microshards run a phase: all; or, where a phase is cut so that finished buckets
  /// leave early, all but the last one, whose own backward pass is the part that is cut.
  enum class Who { all, all_but_last, last };
  /// Actions of one phase, then a meeting (or none), and the range of gradients that it completes.
  struct Phase {
    std::vector<Action> actions;
    int meeting = -1;
    bool backward_meeting = false;
    Range gradients{0, 0};
    std::vector<Range> gaps;  ///< alignment gaps in it, kept at zero
    std::int64_t base = 0;    ///< the flat element that scratch begins with
    Who who = Who::all;
    bool ends_with_loss = false;  ///< of the rank's last microshard: what the host waits for is then known
    bool first = false;           ///< of a microshard: asks for its extent
  };
  struct Slot;
  struct Meeting;

  void build_phases();
  void repack();
  void cut_behind_loss();
  static bool computes_loss(const Phase& phase);
  bool may_record(const BatchView& batch, const Phase& phase) const;
  void set_step(std::int64_t step);
  void cut_at_buckets(std::span<const Range> buckets);
  void add_gradients(Phase& phase, const Graph::Operation& operation) const;
  bool has_gradients(const Graph::Operation& operation) const;
  struct Gradients {
    float* address = nullptr;  ///< of the flat element `base`
    std::int64_t base = 0;
  };
  Gradients gradients_of(int number, const Phase& phase, int thread, const Microshard& microshard,
                         const Slot& slot) const;
  Range gradient_range(const Graph::Operation& operation) const;
  void add_shared_gradients(int owner, const Pass& pass, const Slot& slot);
  void run_phases(const BatchView& batch, GradientReducer* reducer);
  void fetch(const BatchView& batch, const Microshard& microshard, int thread, Slot& slot);
  void look_up_labels(const BatchView& batch);
  void count_labels(const BatchView& batch);
  void loss(const BatchView& batch, const Microshard& microshard, const Lane& lane, Slot& slot);
  void finish(const BatchView& batch);
  void run_microshard(const Phase& phase, const BatchView& batch, int thread, int shard);
  void perform(const Action& action, const BatchView& batch, const Microshard& microshard, int thread,
               Slot& slot, const Phase& phase);
  void meet(const Phase& phase);
  Slot& slot_of(int thread, int shard) const;

  ExecutorContext context_;
  bool training_;
  Range own_;
  Graph::Calls calls_;
  MemoryPlan plan_;
  std::vector<Phase> phases_;
  bool per_shard_slots_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Meeting>> meetings_;  ///< by operation
  std::unique_ptr<GradientAccumulator> accumulator_;
  std::unique_ptr<InputStage> stage_;  ///< null on the CPU, where samples are fetched to where they are used
  std::unique_ptr<LossStage> loss_;
  DeviceEvent losses_known_;
  StepGraphs graphs_;
  Buffer step_words_;  ///< pinned: the global step, of two steps in turn
  Buffer step_word_;   ///< the same where recorded kernels read it
  StepObserver* observer_ = nullptr;
  SparseGradients* sparse_ = nullptr;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace lockstep
