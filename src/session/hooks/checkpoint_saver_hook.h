// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Saves checkpoints: every N steps, epochs and seconds; as often as the time between failures suggests;
// at the start of the session; after an evaluation that is the best so far; on request; and at the end. The
// chief writes, in the background (saver.h). All ranks take part in a save: they compare their variables
// first, so that no checkpoint holds a broken bit of one rank. What only the chief knows (its clock) becomes
// a request, which all ranks follow one step later. A save waits until the one before is durable: which steps
// have a checkpoint does not depend on the speed of the disk.
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

/// A listener is told of every save, on the chief: before_save before the variables are copied, after_save
/// when the file is durable. In the background that is a step or more later.
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
    /// "eval/loss": for retention, and for a save when it is best so far; empty: none.
    std::string best_metric;
    bool compare_ranks = true;     ///< before each save
    bool require_finite = true;    ///< values that are not finite are an error, not a checkpoint
    std::string config_text;       ///< for the files' headers
    std::string computed_on = {};  ///< likewise: CheckpointHeader::computed_on
    std::shared_ptr<const KeptFiles> kept = {};  ///< likewise
    double sync_seconds = 5;  ///< how often ranks synchronise while they wait for the last one
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
  void wait_for_the_one_before();
  void note_best(HookContext& context);
  void check_variables(HookContext& context);
  void tell(HookContext& context, FunctionRef<void(CheckpointSaverListener&)> what);

  Saver& saver_;
  Options options_;
  CheckpointSchedule schedule_;
  std::vector<std::unique_ptr<CheckpointSaverListener>> listeners_;
  bool prepared_ = false;
  bool said_slow_ = false;  ///< on the chief: that training waits for the disk
  std::uint64_t seen_metrics_ = 0;
  double best_[2] = {0, -1};  ///< value, step; step -1: none yet
};

}  // namespace lockstep
