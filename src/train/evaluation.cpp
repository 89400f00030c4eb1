// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation.h"

#include <algorithm>
#include <limits>

#include "core/name_list.h"
#include "core/range.h"

namespace lockstep {

namespace {
StepPlan evaluation_plan(const Heads& heads, const UsedDataset& data, std::int64_t batch_size, int shards) {
  if (!data)
    throw Error(ErrorKind::usage, "there is no evaluation set", "",
                "Add `eval:` to section data, or ask RunContext::eval_data(), which is null without one.");
  LOCKSTEP_REQUIRE(!heads.takes_labels() || data->label_kind() != LabelKind::none, ErrorKind::config,
                   "the data has no labels, which the loss needs");
  return StepPlan({.num_samples = data->size(),
                   .batch_size = batch_size,
                   .shards = shards,
                   .shuffle = Shuffle::none,
                   .choice = data.use().choice});
}
}  // namespace

Evaluation::Evaluation(ExecutorContext context, Communicator& control, const UsedDataset& data,
                       std::int64_t batch_size, std::vector<BoundMetric> metrics)
    : heads_(context.heads),
      plan_(evaluation_plan(context.heads, data, batch_size, context.shards)),
      executor_(context, false, plan_.distinct_shard_sizes()),
      samples_(*data, plan_, context.pool.size(), executor_.num_slots()),
      source_(samples_, context.graph.features().num_elements()),
      report_(context.heads),
      sums_(control, context.shards, 0, report_.width()),
      control_(control) {
  sums_.set_rank_values(kRankValues);
  for (BoundMetric& accuracy : weighted_accuracies(context.heads, context.graph, data)) {
    accuracies_.push_back(accuracy.name);
    metrics.push_back(std::move(accuracy));
  }
  if (metrics.empty()) return;
  metrics_ =
      std::make_unique<EvaluationMetrics>(std::move(metrics), context, executor_.calls(), control, plan_);
  executor_.observe(metrics_->observer());
}

EvaluationResult Evaluation::run(FunctionRef<double()> interruption) {
  executor_.refresh_weights();
  EvaluationResult result;
  if (metrics_) metrics_->begin();
  std::vector<double> totals(static_cast<std::size_t>(report_.width()));
  for (Cursor cursor; cursor.epoch == 0; cursor = plan_.advance(cursor)) {
    const Batch batch = plan_.batch(cursor);
    executor_.run({.source = source_, .batch = batch, .outputs = metrics_.get()});
    const Range own = executor_.own_shards();
    for (int shard = static_cast<int>(own.first); shard < own.last; ++shard)
      LossReport::fill(executor_.head_sums(shard), sums_.leaf(shard));
    sums_.rank_values()[kInterruption] = interruption();
    sums_.rank_values()[kReadFailed] = source_.failed(batch) ? 1 : 0;
    sums_.reduce("sums of the evaluation");
    for (int rank = 0; rank < control_.size(); ++rank) {
      const std::span<const double> values = sums_.rank_values_of(rank);
      if (values[kReadFailed] != 0) source_.throw_error(batch, control_);
      result.interruption = std::max(result.interruption, values[kInterruption]);
    }
    if (result.interruption != 0) return {.interruption = result.interruption};
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += sums_.total(0)[i];
    result.samples += batch.count;
  }
  result.parts.resize(report_.names().size());
  const LossReport::Numbers numbers =
      report_.evaluate(totals.data(), result.parts, 0, std::numeric_limits<double>::quiet_NaN());
  result.loss = numbers.loss;
  result.accuracy = numbers.accuracy;
  if (metrics_) result.metrics = metrics_->finish();
  take_weighted_accuracies(result);
  leave_out(totals.data(), result);
  return result;
}

/// A head for which no sample counts has no numbers, and neither have metrics that need its labels.
void Evaluation::leave_out(const double* totals, EvaluationResult& result) const {
  std::vector<bool> lacks(static_cast<std::size_t>(heads_.size()));
  bool any = false;
  for (int i = 0; i < heads_.size(); ++i) {
    const bool counts = LossReport::counts(totals, i);
    lacks[static_cast<std::size_t>(i)] = !counts;
    any = any || counts;
    if (counts) continue;
    const Head& head = heads_[i];
    if (&head == heads_.only_classifier()) {
      result.without.emplace_back("accuracy");
      result.accuracy = std::numeric_limits<double>::quiet_NaN();
    }
    for (const char* const form : {"loss/{}", "{}/accuracy"})
      result.without.push_back(fmt::format(fmt::runtime(form), head.name));
  }
  if (!any) result.without.emplace_back("loss");
  for (MetricResult& metric : result.metrics) {
    const BoundMetric& bound = metrics_->metrics()[metric.metric];
    if (!metric.report.value || !bound.spec.entry->needs_labels ||
        !lacks[static_cast<std::size_t>(bound.head)])
      continue;
    metric.report.value = std::numeric_limits<double>::quiet_NaN();
    result.without.push_back(metric.name);
  }
  for (std::size_t i = 0; i < result.parts.size(); ++i)
    if (std::ranges::find(result.without, report_.names()[i]) != result.without.end())
      result.parts[i] = std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(result.without);
}

std::string no_result_text(std::span<const std::string_view> names) {
  return fmt::format("no result for {}: no sample counts, since all labels are ignored or all weights are 0",
                     name_list(names));
}

/// The numbers of accuracies_ replace those that the losses count, without weights.
void Evaluation::take_weighted_accuracies(EvaluationResult& result) const {
  for (auto name = accuracies_.rbegin(); name != accuracies_.rend(); ++name) {
    const double value = result.metrics.back().report.value.value_or(0);
    const auto part = std::ranges::find(report_.names(), *name);
    if (part == report_.names().end())
      result.accuracy = value;
    else
      result.parts[static_cast<std::size_t>(part - report_.names().begin())] = value;
    result.metrics.pop_back();
  }
}

bool EvaluationResult::has_metric(std::string_view name) const {
  return std::ranges::any_of(
      metrics, [&](const MetricResult& metric) { return metric.name == name && metric.report.value; });
}

}  // namespace lockstep
