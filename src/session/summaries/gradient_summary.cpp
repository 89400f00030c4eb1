// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/gradient_summary.h"

#include <algorithm>
#include <cmath>

#include "config/option.h"
#include "session/hook_context.h"
#include "session/summaries/summary_part.h"
#include "train/step_sums.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

using Options = GradientSummary::Options;
using Common = GradientSummary::Common;
constexpr ParamSpec kTable[] = {
    option<&Options::common, &Common::variables>(
        "variables", "null", or_null(), "Patterns of the variables, among those that are trained. null: all.",
        Change::free),
    option<&Options::common, &Common::every_steps>("every_steps", "100", between(1, 1e12),
                                                   "After the first step, and at multiples of so many.",
                                                   Change::free),
    option<&Options::common, &Common::histograms>("histograms", "true", {}, "Write gradients/VARIABLE.",
                                                  Change::free),
    option<&Options::norms>(
        "norms", "true", {},
        "Write gradient_norm/LAYER, also to metrics.jsonl: the norm over the chosen variables of a layer.",
        Change::free),
};

std::string layer_of(const std::string& variable) { return variable.substr(0, variable.rfind('/')); }

}  // namespace

GradientSummary::GradientSummary(const Options& options, const Params& params)
    : VariableSummary("summary.gradients", options.common, Of::trained_variables), norms_(options.norms) {
  if (!options.common.histograms && !norms_)
    throw params.error(option_name<&Options::norms>(params), "neither histograms nor norms are wanted",
                       "Set summary.gradients: false.");
}

RecordedText GradientSummary::recorded(const Run& run) const {
  RecordedText text = text_of(run.names);
  if (norms_) text.numbers = "norms by layer";
  return text;
}

void GradientSummary::declare(HookContext& context) {
  const VariableStore& store = context.variables();
  for (const VariableId id : variables()) {
    arrays().push_back({.values = nullptr, .count = store[id].shape.num_elements()});
    const std::string tag = "gradient_norm/" + layer_of(store[id].name);
    const auto known = std::ranges::find(layer_tags_, tag);
    layer_of_.push_back(static_cast<std::size_t>(known - layer_tags_.begin()));
    if (known == layer_tags_.end()) layer_tags_.push_back(tag);
  }
}

void GradientSummary::prepare(HookContext& context) {
  Trainer& trainer = context.trainer();
  trainer.sums().gather_gradients();
  for (std::size_t i = 0; i < variables().size(); ++i) {
    const Variable& variable = context.variables()[variables()[i]];
    if (variable.sparse_index < 0) {
      arrays()[i] = {.values = trainer.sums().gradients() + variable.offset,
                     .count = variable.shape.num_elements()};
    } else {  // the rows that a sparse gradient has; the others are 0
      const SparseRows& rows = trainer.sums().sparse()->total(variable.sparse_index);
      arrays()[i] = {.values = rows.values,
                     .count = *rows.count * (variable.shape.num_elements() / variable.shape[0])};
    }
  }
}

void GradientSummary::collect(HookContext& context, StepSummary& summary) {
  std::vector<double> squares(layer_tags_.size());
  for (std::size_t i = 0; i < variables().size(); ++i) {
    const Variable& variable = context.variables()[variables()[i]];
    const DistributionTotal of_variable = total(i);
    append(summary, "gradients", variable, of_variable, variable.shape.num_elements() - arrays()[i].count);
    squares[layer_of_[i]] += of_variable.not_finite > 0 ? std::nan("") : of_variable.moments.sum_squares;
  }
  if (!norms_) return;
  for (std::size_t i = 0; i < squares.size(); ++i)
    summary.numbers.push_back({layer_tags_[i], std::sqrt(squares[i])});
}

extern const SummaryPart kGradientSummary = {"gradients",
                                             "Histograms and norms of the gradients of the global batch.",
                                             kTable, make_summary<GradientSummary>};

}  // namespace lockstep
