// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/gradient_summary.h"

#include <algorithm>
#include <cmath>

#include "session/hook_context.h"
#include "session/run_names.h"
#include "session/summaries/chosen_names.h"
#include "session/summaries/histogram_data.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    {"variables", ParamType::strings, "null", "or null",
     "Patterns of the variables, among those that are trained. null: all.", Change::free},
    {"every_steps", ParamType::integer, "100", "[1, 1e12]", "At multiples of so many steps.", Change::free},
    {"histograms", ParamType::boolean, "true", "", "Write gradients/VARIABLE.", Change::free},
    {"norms", ParamType::boolean, "true", "",
     "Write gradient_norm/LAYER, also to metrics.jsonl: the norm over the chosen variables of a layer.",
     Change::free},
};

std::string layer_of(const std::string& variable) { return variable.substr(0, variable.rfind('/')); }

}  // namespace

std::span<const ParamSpec> GradientSummary::table() { return kTable; }

GradientSummary::GradientSummary(const Params& options)
    : Hook("summary.gradients"),
      options_(options),
      timer_(options.integer("every_steps"), {}),
      histograms_(options.boolean("histograms")),
      norms_(options.boolean("norms")) {
  if (!histograms_ && !norms_)
    throw options.error("norms", "neither histograms nor norms are wanted", "Set summary.gradients: false.");
}

void GradientSummary::check(const RunNames& names) const {
  chosen_names(options_, "variables", names.trained_variables);
}

void GradientSummary::begin(HookContext& context) {
  const VariableStore& store = context.variables();
  variables_ = chosen_variables(options_, store, true);
  std::vector<std::int64_t> counts;
  for (const VariableId id : variables_) {
    counts.push_back(store[id].shape.num_elements());
    const std::string tag = "gradient_norm/" + layer_of(store[id].name);
    const auto known = std::ranges::find(layer_tags_, tag);
    layer_of_.push_back(static_cast<std::size_t>(known - layer_tags_.begin()));
    if (known == layer_tags_.end()) layer_tags_.push_back(tag);
  }
  arrays_.resize(variables_.size());
  meter_ = std::make_unique<DistributionMeter>(context.trainer().context(), context.control(), counts);
}

void GradientSummary::after_run(HookContext& context, const StepResult& result) {
  if (!timer_.due_by_step(result.step)) return;
  Trainer& trainer = context.trainer();
  trainer.gather_gradients();
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const Variable& variable = context.variables()[variables_[i]];
    if (variable.sparse_index < 0) {
      arrays_[i] = {.values = trainer.summed_gradients() + variable.offset,
                    .count = variable.shape.num_elements()};
    } else {  // the rows that a sparse gradient has; the others are 0
      const SparseRows& rows = trainer.sparse_gradients()->total(variable.sparse_index);
      arrays_[i] = {.values = rows.values,
                    .count = *rows.count * (variable.shape.num_elements() / variable.shape[0])};
    }
  }
  meter_->measure(arrays_);
  if (!context.is_chief()) return;
  std::vector<SummaryValue> histograms;
  std::vector<double> squares(layer_tags_.size());
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const Variable& variable = context.variables()[variables_[i]];
    const DistributionTotal total = meter_->total(i);
    if (histograms_)
      append_histogram(histograms, "gradients/" + variable.name, total,
                       variable.shape.num_elements() - arrays_[i].count);
    squares[layer_of_[i]] += total.not_finite > 0 ? std::nan("") : total.moments.sum_squares;
  }
  if (!histograms.empty())
    context.reports().summary(RunReports::Split::train, result.step, std::move(histograms));
  if (!norms_) return;
  std::vector<RunReports::Value> norms;
  for (std::size_t i = 0; i < squares.size(); ++i) norms.push_back({layer_tags_[i], std::sqrt(squares[i])});
  context.reports().record(RunReports::Split::train, result.step, result.epoch + 1, norms);
}

}  // namespace lockstep
