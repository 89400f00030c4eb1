// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Records steps for `lockstep replay` (--record N): before the step the chief writes the state, afterwards
// the hashes of all ranks. A record that cannot be written is a warning; training goes on. Between recorded
// steps it does nothing.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "session/hook.h"
#include "session/monitored_session.h"
#include "session/step_recorder.h"

namespace lockstep {

class RecordHook : public Hook {
 public:
  struct Options {
    std::set<std::int64_t> steps;  ///< counted from 1
    std::string config_text;       ///< as in checkpoints
    std::vector<std::pair<std::string, std::string>> environment;
  };
  RecordHook(const ExecutorContext& context, Options options);
  bool communicates() const override { return true; }
  void begin(MonitoredSession& session) override;
  void after_create_session(MonitoredSession& session) override;
  void before_run(MonitoredSession& session) override;
  Verdict before_update(MonitoredSession& session, const StepResult& result) override;
  void after_run(MonitoredSession& session, const StepResult& result) override;
  void end(MonitoredSession& session) override;

 private:
  void write_state(MonitoredSession& session, std::int64_t step);
  void write_record(MonitoredSession& session, const StepResult& result, bool finished);

  ExecutorContext context_;
  Options options_;
  std::unique_ptr<StepRecorder> recorder_;
  std::uint64_t variables_before_ = 0;
  bool recording_ = false, failed_ = false;
};

}  // namespace lockstep
