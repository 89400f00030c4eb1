// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/step_numbers.h"

#include <string>
#include <utility>

#include "comm/flight_recorder.h"
#include "data/dataset.h"
#include "data/sample_stream.h"
#include "optim/gradient_clip.h"
#include "optim/optimizer.h"
#include "optim/update_rule.h"
#include "train/run_schedules.h"

namespace lockstep {

namespace {

using Use = StepMetrics::Use;

std::optional<ClipTotals> totals_of(GradientClip& clip) {
  if (!clip.must_wait()) return clip.totals();
  const RecordedCall waiting("the norm of the GPU's gradients", 0);
  return clip.totals();
}

/// The share of clipping, and the norm before it.
void add_norms(StepMetrics& metrics, GradientClip& clip) {
  const auto add = [&](const char* name, double ClipTotals::*number, Use use = Use::summary) {
    metrics.add({.name = name,
                 .use = use,
                 .read = [&clip, number]() -> std::optional<double> {
                   const std::optional<ClipTotals> totals = totals_of(clip);
                   return totals ? std::optional((*totals).*number) : std::nullopt;
                 },
                 .may_wait = clip.must_wait()});
  };
  const ClipRule& rule = clip.rule();
  if (rule.measures()) add("gradient_norm", &ClipTotals::norm, rule.records() ? Use::summary : Use::hooks);
  if (rule.clips_norm()) add("clipped", &ClipTotals::clipped);
}

/// How the readers of a data set that is larger than its memory keep up.
void add_input(StepMetrics& metrics, const Dataset& dataset) {
  const std::vector<SampleStream*> streams = dataset.streams();
  if (streams.empty()) return;
  const auto add = [&](const char* name, double (*number)(const SampleStream::Statistics&)) {
    metrics.add({.name = name, .read = [streams, number] {
                   double sum = 0;
                   for (const SampleStream* stream : streams) sum += number(stream->statistics());
                   return std::optional(sum);
                 }});
  };
  using Statistics = SampleStream::Statistics;
  add("input/wait_seconds", [](const Statistics& s) { return s.seconds_waited; });
  add("input/blocks_ready", [](const Statistics& s) { return static_cast<double>(s.blocks_ready); });
  add("input/reader_threads", [](const Statistics& s) { return static_cast<double>(s.threads); });
}

}  // namespace

StepNumbers::StepNumbers(const Heads& heads, bool regularized, std::unique_ptr<NoiseScale> noise)
    : report_(heads, regularized), noise_(std::move(noise)), parts_(report_.names().size()) {}

void StepNumbers::declare(const Sources& sources) {
  schedules_ = sources.schedules;
  ids_.loss = metrics_.add("loss");
  ids_.accuracy = metrics_.add("accuracy");
  ids_.parts = metrics_.add(report_.names());
  ids_.learning_rate = metrics_.add("learning_rate");
  ids_.schedules = metrics_.size();
  for (std::size_t i = 1; schedules_ != nullptr && i < schedules_->numbers().size(); ++i)
    metrics_.add(schedules_->numbers()[i]->option());
  for (const auto& [name, rule] : sources.optimizer.group_rates())
    metrics_.add({.name = name, .read = [this, rule = rule]() -> std::optional<double> {
                    if (published_step_ == 0) return std::nullopt;
                    return rule->learning_rate(published_step_ - 1);
                  }});
  ids_.loss_scale = sources.scales_loss ? metrics_.add("loss_scale") : StepMetrics::kNone;
  if (sources.clip != nullptr) add_norms(metrics_, *sources.clip);
  if (noise_) metrics_.add({.name = "noise_scale", .read = [this] { return noise_->value(); }});
  ids_.samples = metrics_.add("samples", Use::hooks);
  metrics_.add({.name = "communication_seconds",
                .use = Use::hooks,
                .read = [seconds = sources.communication_seconds] { return std::optional(seconds()); }});
  metrics_.add({.name = "input_seconds", .use = Use::hooks, .read = [seconds = sources.input_seconds] {
                  return std::optional(seconds());
                }});
  add_input(metrics_, sources.dataset);
}

void StepNumbers::fill_leaf(int shard, std::span<const HeadSums> heads, std::int64_t samples,
                            double* leaf) const {
  LossReport::fill(heads, leaf);
  if (!noise_) return;
  const double size = heads.size() == 1 ? heads.front().counts.divisor : static_cast<double>(samples);
  noise_->fill(shard, size, leaf + loss_doubles());
}

StepResult StepNumbers::finish(StepResult step, const double* totals, std::int64_t samples,
                               double regularization) {
  if (noise_) noise_->update(totals + loss_doubles(), static_cast<double>(samples), step.loss_scale);
  const LossReport::Numbers numbers = report_.evaluate(totals, parts_, regularization);
  step.loss = numbers.loss;
  step.accuracy = numbers.accuracy;
  publish(step);
  for (std::size_t i = 0; i < parts_.size(); ++i)
    metrics_.set(ids_.parts + static_cast<StepMetrics::Id>(i), parts_[i]);
  for (std::size_t i = 1; schedules_ != nullptr && i < schedules_->numbers().size(); ++i)
    metrics_.set(ids_.schedules + static_cast<StepMetrics::Id>(i - 1),
                 schedules_->numbers()[i]->at(step.step - 1));
  last_ = step;
  return step;
}

void StepNumbers::publish(const StepResult& result) {
  published_step_ = result.step;
  metrics_.clear();
  metrics_.set(ids_.loss, result.loss);
  metrics_.set(ids_.accuracy, result.accuracy);
  metrics_.set(ids_.learning_rate, result.learning_rate);
  if (ids_.loss_scale != StepMetrics::kNone) metrics_.set(ids_.loss_scale, result.loss_scale);
  metrics_.set(ids_.samples, static_cast<double>(result.samples));
}

}  // namespace lockstep
