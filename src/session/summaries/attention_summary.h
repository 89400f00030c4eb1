// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// attention/<layer>: the attention probabilities of the first sample of a batch, before dropout: a picture
// per head, row by row the queries, column by column the keys. Black is 0, white the largest of the head. The
// chief alone.
#pragma once

#include <string>
#include <vector>

#include "io/png_file.h"
#include "model/attention_maps.h"
#include "session/hook_timer.h"
#include "session/summaries/chosen_names.h"
#include "session/summaries/summary_hook.h"
#include "train/executor_context.h"
#include "train/step_observer.h"

namespace lockstep {

class AttentionSummary final : public SummaryHook, private StepObserver {
 public:
  struct Options {
    ChosenNames layers;
    std::int64_t every_steps = 0;
  };
  AttentionSummary(Options options, const Params& params);

  RecordedText recorded(const Run& run) const override;
  void check(const RunNames& names) const override;
  void begin(HookContext& context) override;
  void after_create_session(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  void forward(int operation, const Pass& pass) override;

  void require_any(bool any) const;

  struct Attending {
    const AttentionMaps* maps;
    std::string tag;
    int operation;
    std::vector<Picture> heads;  ///< of the step in progress
  };
  std::vector<float> host_rows(ConstData from, std::int64_t rows, std::int64_t stride,
                               std::int64_t width) const;

  Options options_;
  std::string where_;
  HookTimer timer_;
  const ExecutorContext* run_ = nullptr;
  std::vector<Attending> layers_;
};

}  // namespace lockstep
