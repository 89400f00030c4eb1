// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/early_stopping_hook.h"

#include "comm/shared_error.h"
#include "config/option.h"
#include "core/name_list.h"
#include "session/hook_context.h"
#include "session/hooks/hook_table.h"
#include "session/number_text.h"
#include "session/run_names.h"

namespace lockstep {

namespace {

void require_metric(const RunNames& names, const std::string& metric) {
  if (!names.evaluates(metric))
    throw Error(ErrorKind::config, fmt::format("no evaluation gives the metric '{}'", metric), "",
                names.advice_for(metric));
}

/// The metric, if an evaluation of this step has noted it. Throws the same error on all ranks for a metric
/// that no evaluation gives.
std::optional<MetricBoard::Entry> news(const MetricBoard& board, std::uint64_t& seen,
                                       const std::string& metric, std::int64_t step) {
  if (board.version() == seen) return std::nullopt;
  seen = board.version();
  const std::optional<MetricBoard::Entry> entry = board.latest(metric);
  if (!entry)
    throw SharedError(Error(ErrorKind::config, fmt::format("no evaluation gives the metric '{}'", metric), "",
                            fmt::format("There are: {}.", name_list(board.names()))));
  return entry->step == step ? entry : std::nullopt;
}

}  // namespace

StopAtThresholdHook::StopAtThresholdHook(std::string name, std::string_view metric, bool higher,
                                         double threshold, std::int64_t min_steps)
    : Hook(std::move(name)),
      metric_(with_split(metric)),
      higher_(higher),
      threshold_(threshold),
      min_steps_(min_steps) {}

void StopAtThresholdHook::check(const RunNames& names) const { require_metric(names, metric_); }

void StopAtThresholdHook::after_run(HookContext& context, const StepResult& result) {
  const auto entry = news(context.eval_metrics(), seen_version_, metric_, result.step);
  if (!entry || entry->step < min_steps_) return;
  if (higher_ ? entry->value > threshold_ : entry->value < threshold_)
    context.finish_now(fmt::format("{} is {}, {} {}", metric_, number_text(entry->value),
                                   higher_ ? "above" : "below", number_text(threshold_)));
}

StopWithoutProgressHook::StopWithoutProgressHook(std::string name, std::string_view metric, bool increase,
                                                 std::int64_t max_steps, std::int64_t min_steps,
                                                 std::int64_t patience)
    : Hook(std::move(name)),
      metric_(with_split(metric)),
      increase_(increase),
      max_steps_(max_steps),
      min_steps_(min_steps),
      patience_(patience) {}

void StopWithoutProgressHook::check(const RunNames& names) const { require_metric(names, metric_); }

void StopWithoutProgressHook::require_direction(Direction of_metric) const {
  if (of_metric == Direction::none || of_metric == (increase_ ? Direction::max : Direction::min)) return;
  throw Error(
      ErrorKind::config,
      fmt::format("{} '{}' is better, and this hook ends training while it {}", better_text(of_metric),
                  without_split(metric_), increase_ ? "decreases" : "increases"),
      "", fmt::format("Use stop_if_no_{}.", increase_ ? "decrease" : "increase"));
}

void StopWithoutProgressHook::begin(HookContext& context) {
  const StateSettings settings = context.settings_of(metric_);
  context.declare_state(*this, "best", best_, settings);
  if (patience_ > 0) context.declare_state(*this, "worse", worse_, settings);
}

void StopWithoutProgressHook::after_run(HookContext& context, const StepResult& result) {
  const auto entry = news(context.eval_metrics(), seen_version_, metric_, result.step);
  if (!entry || entry->step < min_steps_) return;
  const bool better = best_[1] < 0 || (increase_ ? entry->value > best_[0] : entry->value < best_[0]);
  if (better && entry->value == entry->value) {
    best_[0] = entry->value;
    best_[1] = static_cast<double>(entry->step);
    worse_[0] = 0;
    return;
  }
  if (best_[1] < 0) return;
  worse_[0] += 1;
  const bool by_evaluations = patience_ > 0;
  if (by_evaluations ? worse_[0] < static_cast<double>(patience_)
                     : static_cast<double>(entry->step) - best_[1] < static_cast<double>(max_steps_))
    return;
  context.finish_now(fmt::format("{} has not {} since step {}, where it was {}{}", metric_,
                                 increase_ ? "increased" : "decreased", best_[1], number_text(best_[0]),
                                 by_evaluations ? fmt::format(", in {} evaluations", worse_[0]) : ""));
}

namespace {

constexpr std::string_view kMetricHelp =
    "A result of evaluations: loss, accuracy, or a metric of eval.metrics; eval/loss means the same.";
constexpr std::string_view kMinStepsHelp = "Evaluations before this step do not count.";

struct ThresholdOptions {
  std::string metric;
  double threshold = 0;
  std::int64_t min_steps = 0;
};
constexpr ParamSpec kThreshold[] = {
    option<&ThresholdOptions::metric>("metric", kRequired, {}, kMetricHelp, Change::free),
    option<&ThresholdOptions::threshold>("threshold", kRequired, between(-1e30, 1e30),
                                         "The value that the metric must pass.", Change::free),
    option<&ThresholdOptions::min_steps>("min_steps", "0", between(0, 1e12), kMinStepsHelp, Change::free),
};

template <bool kHigher>
std::unique_ptr<Hook> make_threshold(const Params& p, const HookSetting&) {
  const auto [metric, threshold, min_steps] = p.as<ThresholdOptions>();
  return std::make_unique<StopAtThresholdHook>(kHigher ? "stop_if_higher" : "stop_if_lower", metric, kHigher,
                                               threshold, min_steps);
}

struct WithoutProgressOptions {
  std::string metric;
  std::optional<std::int64_t> max_steps, patience;
  std::int64_t min_steps = 0;
};
constexpr ParamSpec kWithoutProgress[] = {
    option<&WithoutProgressOptions::metric>("metric", kRequired, {}, kMetricHelp),
    option<&WithoutProgressOptions::patience>(
        "patience", "null", between(1, 1e12, "evaluations").or_null(),
        "So many evaluations in a row without a better value end training. Give it or max_steps.",
        Change::free),
    option<&WithoutProgressOptions::max_steps>("max_steps", "null", between(1, 1e12, "steps").or_null(),
                                               "How old the best value may be. Give it or patience.",
                                               Change::free),
    option<&WithoutProgressOptions::min_steps>("min_steps", "0", between(0, 1e12), kMinStepsHelp,
                                               Change::free),
};

template <bool kIncrease>
std::unique_ptr<Hook> make_without_progress(const Params& p, const HookSetting&) {
  const auto options = p.as<WithoutProgressOptions>();
  if (options.max_steps.has_value() == options.patience.has_value())
    throw p.error(option_name<&WithoutProgressOptions::patience>(p),
                  "exactly one of patience and max_steps says how long to wait",
                  "Write patience: 5 for five evaluations, or max_steps: 500.");
  return std::make_unique<StopWithoutProgressHook>(kIncrease ? "stop_if_no_increase" : "stop_if_no_decrease",
                                                   options.metric, kIncrease, options.max_steps.value_or(0),
                                                   options.min_steps, options.patience.value_or(0));
}

}  // namespace

extern const HookEntry kStopIfHigherHook = {"stop_if_higher",
                                            "Ends training when an evaluation's metric is above a threshold.",
                                            kThreshold, make_threshold<true>, Change::free};
extern const HookEntry kStopIfLowerHook = {"stop_if_lower",
                                           "Ends training when an evaluation's metric is below a threshold.",
                                           kThreshold, make_threshold<false>, Change::free};
extern const HookEntry kStopIfNoIncreaseHook = {
    "stop_if_no_increase", "Early stopping: ends training when a metric has not increased for too long.",
    kWithoutProgress, make_without_progress<true>, Change::free};
extern const HookEntry kStopIfNoDecreaseHook = {
    "stop_if_no_decrease", "Early stopping: ends training when a metric has not decreased for too long.",
    kWithoutProgress, make_without_progress<false>, Change::free};

}  // namespace lockstep
