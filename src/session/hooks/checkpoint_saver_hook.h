// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Saves checkpoints: every so many steps, epochs and seconds, as often as failures make it worth while, at
// the session's start, after an evaluation that is the best so far, on request, and at the end. The chief
// writes, in the background (saver.h). A save is a matter of all ranks: they compare their variables first,
// so that no broken bit of one gets into a checkpoint. What only the chief knows (its clock, that the last
// save has ended) becomes a request, one step later.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "core/thread_pool.h"
#include "session/checkpoint_schedule.h"
#include "session/hook.h"
#include "session/saver.h"

namespace lockstep {

/// Told of every save, on the chief. before_save comes before the variables are copied, after_save when the
/// file is durable, a step or more later if it is written in the background.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  virtual void begin(HookContext&) {}
  virtual void before_save(HookContext&, std::int64_t /*step*/) {}
  /// True asks for a stop.
  virtual bool after_save(HookContext&, std::int64_t /*step*/, const std::string& /*path*/) { return false; }
  virtual void end(HookContext&, std::int64_t /*step*/) {}
};

class CheckpointSaverHook : public Hook {
 public:
  struct Options {
    CheckpointTriggers triggers;
    std::string
        best_metric;  ///< "eval/loss": for retention, and for a save when it is the best so far; empty: none
    bool compare_ranks = true;   ///< before each save
    bool require_finite = true;  ///< broken variables are an error, not a checkpoint
    std::string config_text;     ///< for the files' headers
    double meet_seconds = 5;     ///< how often ranks meet while they wait for the last one
    CheckpointCopyWays copy_ways;
  };
  /// `saver` outlives the hook.
  CheckpointSaverHook(Saver& saver, Options options);
  void add_listener(std::unique_ptr<CheckpointSaverListener> listener);

  bool communicates() const override { return true; }
  void begin(HookContext& context) override;
  void after_create_session(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  struct State {
    CheckpointHeader header;
    std::vector<CheckpointTensor> tensors;
  };
  State state(HookContext& context) const;
  std::optional<double> new_metric(HookContext& context);
  bool is_best(double metric, std::int64_t step);
  void collect(HookContext& context);
  void save(HookContext& context);
  void check(HookContext& context);
  void tell(HookContext& context, FunctionRef<void(CheckpointSaverListener&)> what);

  Saver& saver_;
  Options options_;
  CheckpointSchedule schedule_;
  std::vector<std::unique_ptr<CheckpointSaverListener>> listeners_;
  bool prepared_ = false;
  bool postponed_ = false;  ///< the chief's: due, and another one is still being written
  std::uint64_t seen_metrics_ = 0;
  double best_[2] = {0, -1};  ///< value, step; step -1: none yet
};

}  // namespace lockstep
