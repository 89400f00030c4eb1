// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a step sums over all ranks: dense gradients (GradientReducer), gradients of sparse tables, and small
// numbers (losses, and the values that each rank sends to all). Where ranks share the update, a rank has the
// sums of its parts of the dense gradients alone.
#pragma once

#include <memory>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/small_sum.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "train/executor_context.h"
#include "train/kernel_arithmetic.h"
#include "train/sparse_gradients.h"

namespace lockstep {

class StepPlan;
struct TrainerOptions;

/// The options of a reducer whose partials are in the memory of the context's device.
GradientReducerOptions placed(GradientReducerOptions options, const ExecutorContext& context,
                              const NodeArithmetic& arithmetic);

class StepSums {
 public:
  /// The rank values of exchange() that belong to the trainer, by number. Others follow.
  static constexpr int kGradientState = 0, kReadFailed = 1, kRankValues = 2;

  /// All ranks. `gradients` and `control` are duplicates of the world. `leaf_doubles`: a microshard's small
  /// numbers. References outlive the sums.
  StepSums(const ExecutorContext& context, Communicator& gradients, Communicator& control,
           const StepPlan& plan, const TrainerOptions& options, int leaf_doubles);

  GradientReducer& reducer() { return reducer_; }
  const GradientReducer& reducer() const { return reducer_; }
  const NodeArithmetic& arithmetic() const { return arithmetic_; }
  /// The dense gradient of the global batch: dense_elements() values, flat as in the variable store. Before
  /// clipping. Valid from Trainer::compute() to the next one. Where ranks share the update: of this rank's
  /// parts only.
  float* gradients() { return reducer_.result(); }
  /// The same of sparse tables; null if there are none.
  SparseGradients* sparse() { return sparse_.get(); }
  const SparseGradients* sparse() const { return sparse_.get(); }
  /// The step's small sums, and the values that each rank sends with them (SmallSum::set_rank_values).
  SmallSum& exchange() { return exchange_; }
  const SmallSum& exchange() const { return exchange_; }
  /// What this rank sends with the exchange: it could not read its samples.
  void say_read_failed(bool failed) { exchange_.rank_values()[kReadFailed] = failed ? 1 : 0; }
  /// After the exchange: some rank could not.
  bool any_read_failed() const;
  /// Sums the gradients of sparse tables, after all microshards. All ranks.
  void reduce_sparse() {
    if (sparse_) sparse_->reduce();
  }

  /// The parts of all ranks where they share the update; null: every rank updates all variables.
  const Ownership* ownership() const { return ownership_.get(); }
  /// Between compute() and the next compute(): where ranks share the update, each gets the gradients of all
  /// parts, so that gradients() is whole. All ranks.
  void gather_gradients(const char* what = "gradients for summaries") {
    if (ownership_) reducer_.gather(gradients(), what);
  }
  /// Calls then(range) for the thread's share of the dense elements that this rank updates.
  void for_own_parts(int thread, FunctionRef<void(Range)> then) const;

  /// Includes what sparse tables sent in the last step.
  std::int64_t bytes_sent_per_step() const {
    return reducer_.bytes_per_step() + (sparse_ ? sparse_->bytes_sent() : 0);
  }
  std::size_t memory_bytes() const {
    return reducer_.memory_bytes() + (sparse_ ? sparse_->memory_bytes() : 0);
  }

 private:
  ThreadPool& pool_;
  const int ranks_;
  const KernelArithmetic arithmetic_;
  const std::shared_ptr<const Ownership> ownership_;
  const std::vector<Range> own_;  ///< dense elements that this rank updates, ascending
  GradientReducer reducer_;
  SmallSum exchange_;
  std::unique_ptr<SparseGradients> sparse_;
};

}  // namespace lockstep
