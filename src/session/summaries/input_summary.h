// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// inputs: a contact sheet of the first samples of a batch as the model sees them, after transforms and
// mixing; one sheet per input if there are several (inputs/<name>). inputs/audio/<i>: inputs that are sounds.
// inputs/samples: a table in text with their records, labels and predictions, and with inputs that are words
// or numbers. After the first step of a run, and at multiples of steps. The chief alone, of its first
// microshard.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "session/hook_timer.h"
#include "session/summaries/shown_input.h"
#include "session/summaries/summary_hook.h"
#include "train/executor_context.h"
#include "train/step_observer.h"

namespace lockstep {

class InputSummary final : public SummaryHook, private StepObserver {
 public:
  struct Options {
    std::int64_t every_steps = 0, count = 0;
    std::optional<double> sample_rate;
  };
  InputSummary(const Options& options, const Params& params);

  RecordedText recorded(const Run& run) const override;
  void begin(HookContext& context) override;
  void after_create_session(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  void fetched(const Microshard&, const Lane&, const float* features) override;
  void lost(const Microshard&, const Lane&, std::span<const HeadSums>, std::span<const LossStage::Place>,
            const LabelBlock&) override;

  /// Throws Error(config) if there is a sample rate, and no sound.
  std::vector<ShownInput> inputs_of(const Dataset& data) const;
  /// Values of one input of a sample of the step in progress.
  std::span<const float> values_of(const ShownInput& input, std::int64_t sample) const;
  std::string tag_of(const ShownInput& input) const;
  SummaryValue sheet_of(const ShownInput& input) const;
  void add_sounds(const ShownInput& input, std::vector<SummaryValue>& values) const;
  bool due(std::int64_t step) const { return timer_.due_from_the_first(step); }
  std::string table_of(HookContext& context) const;

  Options options_;
  std::string where_;
  HookTimer timer_;
  const ExecutorContext* run_ = nullptr;
  const Dataset* data_ = nullptr;
  std::vector<ShownInput> inputs_;
  Batch batch_{};
  // Of the step in progress.
  std::int64_t samples_ = 0, first_sample_ = 0;
  std::vector<float> features_;
  std::vector<std::vector<float>> outputs_;       ///< by head
  std::vector<std::vector<std::string>> labels_;  ///< by head and sample; empty: not shown
};

}  // namespace lockstep
