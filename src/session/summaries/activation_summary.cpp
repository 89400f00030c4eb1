// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/activation_summary.h"

#include <algorithm>

#include "config/option.h"
#include "session/hook_context.h"
#include "session/summaries/histogram_data.h"
#include "session/summaries/summary_part.h"
#include "train/executor.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

using Options = ActivationSummary::Options;
constexpr ParamSpec kTable[] = {
    option<&Options::layers>(
        "layers", "null", or_null(),
        "Patterns of the layers; null: all. Of layers that run in one pass (conv2d and relu), the last one's "
        "output is seen.",
        Change::free),
    option<&Options::every_steps>("every_steps", "100", between(1, 1e12),
                                  "After the first step, and at multiples of so many.", Change::free),
    option<&Options::histograms>("histograms", "true", {}, "Write activations/LAYER.", Change::free),
    option<&Options::fractions>(
        "fractions", "true", {},
        "Write zero_fraction/LAYER, and saturation/LAYER of sigmoid, tanh and relu6, also to metrics.jsonl.",
        Change::free),
};

}  // namespace

ActivationSummary::ActivationSummary(Options options, const Params& params)
    : SummaryHook("summary.activations"), options_(std::move(options)), timer_(options_.every_steps, {}) {
  if (!options_.histograms && !options_.fractions)
    throw params.error(option_name<&Options::fractions>(params),
                       "neither histograms nor fractions are wanted", "Set summary.activations: false.");
}

void ActivationSummary::check(const RunNames& names) const { options_.layers.among(names.layers); }

RecordedText ActivationSummary::recorded(const Run& run) const {
  const std::vector<bool> is_chosen = options_.layers.among(run.names.layers);
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < is_chosen.size(); ++i)
    if (is_chosen[i]) chosen.push_back(run.names.layers[i]);
  RecordedText text{.when = from_the_first_text(options_.every_steps),
                    .of = chosen_text(chosen, is_chosen.size(), "layers")};
  if (options_.histograms) text.events = "histograms";
  if (options_.fractions) text.numbers = "shares of zeros and of saturated outputs";
  return text;
}

void ActivationSummary::begin(HookContext& context) {
  const Trainer& trainer = context.trainer();
  const ExecutorContext& run = trainer.context();
  std::vector<std::string> names;
  for (const Graph::Node& node : run.graph.nodes()) names.push_back(node.layer->name());
  const std::vector<bool> chosen = options_.layers.among(names);
  const auto is_chosen = [&](const std::string& name) {
    return chosen[static_cast<std::size_t>(std::ranges::find(names, name) - names.begin())];
  };
  std::vector<ActivationMeter::Output> outputs =
      ActivationMeter::outputs_of(run.graph, trainer.executor().calls());
  std::erase_if(outputs, [&](const auto& output) { return std::ranges::none_of(output.layers, is_chosen); });
  if (outputs.empty())
    throw options_.layers.error("the chosen layers only give their input another shape",
                                "Choose the layers before them.");
  for (const ActivationMeter::Output& output : outputs) {
    zero_tags_.push_back("zero_fraction/" + output.name);
    saturation_tags_.push_back("saturation/" + output.name);
  }
  const std::vector<std::int64_t> sizes = trainer.plan().distinct_shard_sizes();
  meter_ =
      std::make_unique<ActivationMeter>(run, context.control(), std::move(outputs),
                                        trainer.executor().own_shards(), *std::ranges::max_element(sizes));
}

/// A step that an error ended has left its observer.
void ActivationSummary::after_create_session(HookContext& context) {
  context.trainer().remove_observer(*meter_);
}

void ActivationSummary::before_run(HookContext& context) {
  if (!timer_.due_from_the_first(context.global_step() + 1)) return;
  meter_->clear();
  context.trainer().add_observer(*meter_);
}

void ActivationSummary::after_run(HookContext& context, const StepResult& result) {
  if (!timer_.due_from_the_first(result.step)) return;
  context.trainer().remove_observer(*meter_);
  meter_->gather();
  if (!context.is_chief()) return;
  StepSummary summary;
  for (std::size_t i = 0; i < meter_->outputs().size(); ++i) {
    const ActivationMeter::Output& output = meter_->outputs()[i];
    const DistributionTotal total = meter_->total(i);
    if (options_.histograms) append_histogram(summary.events, "activations/" + output.name, total);
    const auto count = static_cast<double>(total.count());
    if (!options_.fractions || count == 0) continue;
    summary.numbers.push_back({zero_tags_[i], static_cast<double>(total.moments.zeros) / count});
    if (output.is_bounded)
      summary.numbers.push_back({saturation_tags_[i], static_cast<double>(total.moments.beyond) / count});
  }
  summary.write(context, result);
}

extern const SummaryPart kActivationSummary = {"activations",
                                               "Histograms of the outputs of layers over the global batch.",
                                               kTable, make_summary<ActivationSummary>};

}  // namespace lockstep
