// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// inputs: a contact sheet of the first samples of a batch as the model sees them, after transforms and
// mixing; one sheet per input if there are several (inputs/<name>). inputs/samples: a table in text with
// their records, labels and predictions. After the first step of a run, and at multiples of steps. The chief
// alone, of its first microshard.
#pragma once

#include <string>
#include <vector>

#include "core/named_shape.h"
#include "session/hooks/hook_timer.h"
#include "session/summaries/summary_hook.h"
#include "train/step_observer.h"

namespace lockstep {

class InputSummary final : public SummaryHook, private StepObserver {
 public:
  static std::span<const ParamSpec> table();
  explicit InputSummary(const Params& options);

  RecordedText recorded(const Run& run) const override;
  void begin(HookContext& context) override;
  void after_create_session(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  void fetched(const Microshard&, const Lane&, const float* features) override;
  void forward(int, const Pass&) override {}
  void lost(const Microshard&, const Lane&, std::span<const HeadSums>, std::span<const LossStage::Place>,
            const LabelBlock&) override;
  void backward(int, const Pass&) override {}
  void backward_local(int, const Pass&) override {}
  void synchronised(int, bool, std::span<const double* const>) override {}

  /// An input that is a picture, and where it begins in a sample.
  struct Input {
    NamedShape input;
    std::int64_t first;
  };
  /// Throws Error(config) if there are none.
  std::vector<Input> pictures_of(const Dataset& data) const;
  bool due(std::int64_t step) const { return step == 1 || timer_.due_by_step(step); }
  std::string table_of(HookContext& context) const;

  Params options_;
  HookTimer timer_;
  std::int64_t most_;  ///< samples that are shown
  const ExecutorContext* run_ = nullptr;
  std::vector<Input> inputs_;
  Batch batch_{};
  // Of the step in progress.
  std::int64_t samples_ = 0, first_sample_ = 0;
  std::vector<float> features_;
  std::vector<std::vector<float>> outputs_;       ///< by head
  std::vector<std::vector<std::string>> labels_;  ///< by head and sample; empty: not shown
};

}  // namespace lockstep
