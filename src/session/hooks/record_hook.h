// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Records steps for `lockstep replay` (--record N). The chief writes the state before such a step, and the
// hashes of all ranks after it. If a record cannot be written, a warning says so and training continues. In
// other steps the hook does nothing.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "session/distributed_state.h"
#include "session/hook.h"
#include "session/hook_context.h"
#include "session/step_recorder.h"

namespace lockstep {

class RecordHook : public Hook {
 public:
  struct Options {
    std::set<std::int64_t> steps;  ///< counted from 1
    std::string config_text;       ///< as in checkpoints
    std::vector<std::pair<std::string, std::string>> environment;
    DistributedState* distributed = nullptr;  ///< state that only some ranks have; null: none
  };
  RecordHook(const ExecutorContext& context, Options options);
  bool communicates() const override { return true; }
  void begin(HookContext& context) override;
  void after_create_session(HookContext& context) override;
  void before_run(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;
  bool decides_update() const override { return true; }
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  void write_state(HookContext& context, std::int64_t step);
  void write_record(HookContext& context, const StepResult& result, bool finished);

  ExecutorContext context_;
  Options options_;
  std::unique_ptr<StepRecorder> recorder_;
  std::uint64_t variables_before_ = 0;
  bool recording_ = false, failed_ = false;
};

}  // namespace lockstep
