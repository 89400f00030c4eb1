// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Saves checkpoints: every so many steps, epochs and seconds, at the session's start, on request, and at the
// end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/hook.h"
#include "driver/hooks/hook_timer.h"
#include "io/checkpoint_store.h"

namespace lockstep {

/// Told of every save, on the chief. before_save comes before the variables are copied, after_save when the
/// file is on the disk (a step or more later, if it is written in the background).
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  virtual void begin(MonitoredSession&) {}
  virtual void before_save(MonitoredSession&, std::int64_t /*step*/) {}
  /// True asks for a stop.
  virtual bool after_save(MonitoredSession&, std::int64_t /*step*/, const std::string& /*path*/) {
    return false;
  }
  virtual void end(MonitoredSession&, std::int64_t /*step*/) {}
};

class CheckpointSaverHook : public Hook {
 public:
  struct Options {
    HookTimer timer;
    std::int64_t every_epochs = 0;  ///< 0: never for this reason
    bool at_start = false;
    bool require_finite = true;  ///< broken variables are an error, not a checkpoint
    std::string config_text;     ///< for the file's header
  };
  CheckpointSaverHook(CheckpointStore& store, Options options);
  void add_listener(std::unique_ptr<CheckpointSaverListener> listener);

  void begin(MonitoredSession& session) override;
  void after_create_session(MonitoredSession& session) override;
  void before_run(MonitoredSession& session) override;
  void after_run(MonitoredSession& session, const StepResult& result) override;
  void end(MonitoredSession& session) override;

 private:
  void save(MonitoredSession& session, bool final);

  CheckpointStore& store_;
  Options options_;
  std::vector<std::unique_ptr<CheckpointSaverListener>> listeners_;
  std::int64_t saved_step_ = -1;
};

}  // namespace lockstep
