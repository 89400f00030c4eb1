// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The engine of servers and workers (section `cluster`): workers compute parts of batches, each on its rank
// alone, and servers, which hold the variables, sum the parts and update. A round has the steps up to the
// next meeting of all ranks; the update of its last step is that of any trainer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/mailbox.h"
#include "comm/self_communicator.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "train/executor_context.h"
#include "train/part_batch_source.h"
#include "train/server_messages.h"
#include "train/server_options.h"
#include "train/step_engine.h"

namespace lockstep {

class DatasetBatchSource;
class Executor;
class ServerAlone;
class ServerLoop;
class ServerWorker;
class StepNumbers;
class StepPlan;
class StepSums;
class StepUpdate;

class ServerTraining final : public StepEngine {
 public:
  /// What a trainer owns; all of it outlives the engine. The executor has the part_context().
  struct Parts {
    const ExecutorContext& context;
    Communicator& control;
    SelfCommunicator& part_ranks;
    const StepPlan& plan;
    Executor& executor;
    DatasetBatchSource& source;
    const StepNumbers& numbers;
    StepSums& sums;
    StepUpdate& update;
  };
  /// All ranks.
  ServerTraining(ServerTrainingOptions options, const Parts& parts);
  ~ServerTraining() override;

  /// The context of training's executor: the microshards of a part, on this rank alone.
  static ExecutorContext part_context(const ExecutorContext& context, const ServerLayout& layout,
                                      SelfCommunicator& alone);

  /// Runs the steps of the round before its last one.
  std::int64_t run_ahead(StepPosition& position) override;
  void compute(const StepPosition&, Gating) override {}  // run_ahead() has left the sums of the last step
  void fill_leaves(const Batch& batch) override;
  std::optional<Batch> batch_of(std::int64_t step) const override;
  bool repeats() const override { return false; }
  void repeat(const StepPosition& position, StepObserver& observer) override;
  void set_gating(Gating) override {}
  void set_feed(Feed feed) override;
  void add_observer(StepObserver& observer) override;
  void remove_observer(StepObserver&) override {}
  /// Of a step of the last round, but for the meeting.
  std::int64_t bytes_sent_per_step() const override { return round_bytes_; }
  double seconds_waited() const override;
  std::size_t memory_bytes() const override;
  const ServerTraining* servers() const override { return this; }

  bool is_server() const { return options_.layout.is_server(parts_.control.rank()); }
  const ServerLayout& layout() const { return options_.layout; }
  std::int64_t dropped() const;
  /// ServerWorker's, 0 on other ranks.
  std::int64_t versions_ahead() const;
  std::int64_t versions_pulled() const;

  /// One rank is worker and server at once.
  bool is_alone() const { return options_.layout.ranks == 1; }

 private:
  void make_reducer();
  void begin_round(const StepPosition& position);
  Cursor cursor(std::int64_t step) const { return cursors_[static_cast<std::size_t>(step - round_.first)]; }
  void serve();
  void work();
  void work_alone();
  PartGradient compute_part(const PartTicket& ticket);
  void update(std::int64_t step, std::span<const char> parts);
  void weigh_parts(const Batch& batch, std::span<const char> parts);
  void variables_changed();
  std::int64_t bytes_sent() const;

  const ServerTrainingOptions options_;
  const Parts parts_;
  std::unique_ptr<Mailbox> mailbox_;
  std::vector<Range> own_;  ///< what this rank holds
  int leaf_doubles_;        ///< of a microshard
  PartBatchSource source_;
  std::unique_ptr<GradientReducer> reducer_;  ///< of a part
  std::unique_ptr<ServerLoop> server_;
  std::unique_ptr<ServerWorker> worker_;
  std::unique_ptr<ServerAlone> alone_;
  std::vector<double> losses_, part_losses_;
  ServerRound round_;
  std::vector<Cursor> cursors_;  ///< of the round's steps
  std::int64_t round_bytes_ = 0;
};

}  // namespace lockstep
