// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a trainer has in addition where servers hold the variables (section `cluster`): the messages, this
// rank's part in a round, and an executor's surroundings for a part of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/mailbox.h"
#include "comm/self_communicator.h"
#include "core/range.h"
#include "data/step_plan.h"
#include "train/executor.h"
#include "train/part_batch_source.h"
#include "train/server_layout.h"
#include "train/server_messages.h"

namespace lockstep {

class ServerAlone;
class ServerLoop;
class ServerWorker;

struct ServerTrainingOptions {
  ServerLayout layout;
  int staleness = 0;
  std::int64_t meet_every_steps = 1;
  std::optional<int> aggregate;
  std::int64_t last_step = 0;  ///< of the run; the last round ends there
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  /// Of this worker: it takes no parts in rounds that begin before.
  std::int64_t first_step = 0;
};

class ServerTraining {
 public:
  /// All ranks.
  ServerTraining(ServerTrainingOptions options, const ExecutorContext& context, Communicator& control,
                 const NodeArithmetic& arithmetic);
  ~ServerTraining();

  /// For the executor of training: the microshards of a part, on this rank alone.
  ExecutorContext part_context();
  /// The executor computes the parts, whose samples come from `source`. `leaf_doubles`: of the losses of a
  /// microshard. All references outlive this object.
  void attach(Executor& executor, BatchSource& source, int leaf_doubles);

  /// One rank is worker and server at once.
  bool is_alone() const { return options_.layout.ranks == 1; }
  bool is_server() const { return options_.layout.is_server(control_.rank()); }
  const ServerLayout& layout() const { return options_.layout; }
  /// Divides a step's gradient by the samples of its parts instead of those of the batch.
  bool drops() const { return options_.aggregate.has_value(); }

  /// The steps from `step` to the next meeting, whose cursors cursor() then gives.
  ServerRound next_round(const StepPlan& plan, std::int64_t step, Cursor cursor);
  Cursor cursor(std::int64_t step) const { return cursors_[static_cast<std::size_t>(step - round_.first)]; }

  /// On a server. update(step, parts) finds the sum in `gradients` (flat), where this rank holds variables.
  void serve(float* gradients, const float* variables,
             FunctionRef<void(std::int64_t step, std::span<const char> parts)> update);
  /// On a worker. `begin(step)` is called before a part is computed, with the variables of its version in
  /// place.
  void work(const StepPlan& plan, float* variables, FunctionRef<void()> changed,
            FunctionRef<void(std::int64_t step)> begin);
  /// On one rank: both.
  void work_alone(const StepPlan& plan, float* gradients, float* variables, FunctionRef<void()> changed,
                  FunctionRef<void(std::int64_t step)> begin,
                  FunctionRef<void(std::int64_t step, std::span<const char> parts)> update);
  /// All ranks, after the round: the losses of the last step, leaf by leaf of all microshards.
  std::span<const double> share_losses();

  double seconds_waited() const;
  std::int64_t bytes_sent() const;
  std::int64_t dropped() const;
  /// ServerWorker's, 0 on other ranks.
  std::int64_t versions_ahead() const;
  std::int64_t versions_pulled() const;
  std::size_t memory_bytes() const;

 private:
  void make_reducer(Executor& executor);
  PartGradient compute(const StepPlan& plan, const PartTicket& ticket);

  ServerTrainingOptions options_;
  const ExecutorContext& context_;
  Communicator& control_;
  const NodeArithmetic& arithmetic_;
  SelfCommunicator self_{"a part of a batch"};
  std::unique_ptr<Mailbox> mailbox_;
  std::vector<Range> own_;  ///< what this rank holds
  int leaf_doubles_ = 0;    ///< of a microshard
  Executor* executor_ = nullptr;
  std::optional<PartBatchSource> source_;
  std::unique_ptr<GradientReducer> reducer_;  ///< of a part
  std::unique_ptr<ServerLoop> server_;
  std::unique_ptr<ServerWorker> worker_;
  std::unique_ptr<ServerAlone> alone_;
  std::vector<double> losses_, part_losses_;
  ServerRound round_;
  std::vector<Cursor> cursors_;  ///< of the round's steps
};

}  // namespace lockstep
