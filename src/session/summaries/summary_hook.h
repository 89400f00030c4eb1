// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A part of section `summary` (summary_part.h): a hook that can say what it will record, and what the chief
// records of one step.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "io/summary_value.h"
#include "session/hook.h"
#include "session/run_names.h"
#include "session/run_reports.h"
#include "train/model.h"

namespace lockstep {

/// What a part will record, as `lockstep check` prints it.
struct RecordedText {
  std::string when;            ///< "every 100 steps"
  std::string of = {};         ///< "2 of 8 variables (conv1/kernel, conv1/bias)"; empty: not chosen by names
  std::string events = {};     ///< in event files only: "histograms"; empty: nothing
  std::string numbers = {};    ///< in metrics.jsonl too: "norms by layer"; empty: none
  std::size_t kept_bytes = 0;  ///< on the device of each rank, from the first step to the last
  std::string kept = {};       ///< what that is: "a copy of these variables"
};

class SummaryHook : public Hook {
 public:
  struct Run {
    const RunNames& names;
    const Model& model;
    const Dataset& train;
  };
  /// What the part will record, without a session. Throws Error(config) where begin() would.
  virtual RecordedText recorded(const Run& run) const = 0;

 protected:
  using Hook::Hook;
};

/// What a part records of a step, on the chief.
struct StepSummary {
  std::vector<SummaryValue> events;
  std::vector<RunReports::Value> numbers;  ///< whose names outlive write()

  void write(HookContext& context, const StepResult& result);
};

/// "every 100 steps", "every step".
std::string every_text(std::int64_t steps);
/// The same of a part that begins with the first step: "after the first step and every 100 steps".
std::string from_the_first_text(std::int64_t steps);

}  // namespace lockstep
