// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the parts weights, gradients and updates share: variables chosen by patterns, measured by all ranks
// after a step, at multiples of steps, and histograms of them. A part declares what is measured and says how
// the chief records it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "session/hook_timer.h"
#include "session/summaries/chosen_names.h"
#include "session/summaries/summary_hook.h"
#include "train/distribution_meter.h"

namespace lockstep {

class VariableSummary : public SummaryHook {
 public:
  /// What the three parts have in common.
  struct Common {
    ChosenNames variables;
    std::int64_t every_steps = 0;
    bool histograms = true;  ///< wanted
  };

  bool communicates() const final { return true; }
  void check(const RunNames& names) const final;
  void begin(HookContext& context) final;
  void after_run(HookContext& context, const StepResult& result) final;

 protected:
  enum class Of { all_variables, trained_variables };
  VariableSummary(std::string name, Common options, Of of);

  /// Fills arrays(), in begin, with the address, if it is known, and the most numbers of each.
  virtual void declare(HookContext& context) = 0;
  /// All ranks, before arrays() are measured.
  virtual void prepare(HookContext&) {}
  /// The chief, after that.
  virtual void collect(HookContext& context, StepSummary& summary) = 0;

  bool due(std::int64_t step) const { return timer_.due_from_the_first(step); }
  std::span<const VariableId> variables() const { return variables_; }
  std::vector<DistributionMeter::Array>& arrays() { return arrays_; }
  DistributionTotal total(std::size_t array) const { return meter_->total(array); }
  /// Appends the histogram if histograms are wanted. `zeros`: further numbers, all 0.
  void append(StepSummary& summary, std::string_view prefix, const Variable& variable,
              const DistributionTotal& total, std::int64_t zeros = 0) const;

  /// The text with the interval, the variables, and "histograms" if they are wanted.
  RecordedText text_of(const RunNames& names) const;
  /// Names of the chosen variables.
  std::vector<std::string> chosen(const RunNames& names) const;

 private:
  const std::vector<std::string>& candidates(const RunNames& names) const;

  Common options_;
  Of of_;
  HookTimer timer_;
  std::vector<VariableId> variables_;
  std::vector<DistributionMeter::Array> arrays_;
  std::unique_ptr<DistributionMeter> meter_;
};

}  // namespace lockstep
