// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/variable_summary.h"

#include <fmt/format.h>

#include "session/hook_context.h"
#include "session/summaries/histogram_data.h"
#include "train/trainer.h"

namespace lockstep {

VariableSummary::VariableSummary(std::string name, Common options, Of of)
    : SummaryHook(std::move(name)), options_(std::move(options)), of_(of), timer_(options_.every_steps, {}) {}

const std::vector<std::string>& VariableSummary::candidates(const RunNames& names) const {
  return of_ == Of::trained_variables ? names.trained_variables : names.variables;
}

void VariableSummary::check(const RunNames& names) const { options_.variables.among(candidates(names)); }

void VariableSummary::begin(HookContext& context) {
  variables_ = options_.variables.among(context.variables(), of_ == Of::trained_variables);
  declare(context);
  std::vector<std::int64_t> counts;
  for (const DistributionMeter::Array& array : arrays_) counts.push_back(array.count);
  meter_ = std::make_unique<DistributionMeter>(context.trainer().context(), context.control(), counts);
}

void VariableSummary::after_run(HookContext& context, const StepResult& result) {
  if (!due(result.step)) return;
  prepare(context);
  meter_->measure(arrays_);
  if (!context.is_chief()) return;
  StepSummary summary;
  collect(context, summary);
  summary.write(context, result);
}

void VariableSummary::append(StepSummary& summary, std::string_view prefix, const Variable& variable,
                             const DistributionTotal& total, std::int64_t zeros) const {
  if (options_.histograms)
    append_histogram(summary.events, fmt::format("{}/{}", prefix, variable.name), total, zeros);
}

std::vector<std::string> VariableSummary::chosen(const RunNames& names) const {
  const std::vector<std::string>& all = candidates(names);
  const std::vector<bool> is_chosen = options_.variables.among(all);
  std::vector<std::string> some;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_chosen[i]) some.push_back(all[i]);
  return some;
}

RecordedText VariableSummary::text_of(const RunNames& names) const {
  return {.when = from_the_first_text(options_.every_steps),
          .of = chosen_text(chosen(names), candidates(names).size(),
                            of_ == Of::trained_variables ? "trained variables" : "variables"),
          .events = options_.histograms ? "histograms" : ""};
}

}  // namespace lockstep
