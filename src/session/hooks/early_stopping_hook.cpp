// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/early_stopping_hook.h"

#include "comm/shared_error.h"
#include "session/hook_context.h"
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
                            fmt::format("There are: {}.", fmt::join(board.names(), ", "))));
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
    context.stop_for_good(fmt::format("{} is {}, {} {}", metric_, number_text(entry->value),
                                      higher_ ? "above" : "below", number_text(threshold_)));
}

StopWithoutProgressHook::StopWithoutProgressHook(std::string name, std::string_view metric, bool increase,
                                                 std::int64_t max_steps, std::int64_t min_steps)
    : Hook(std::move(name)),
      metric_(with_split(metric)),
      increase_(increase),
      max_steps_(max_steps),
      min_steps_(min_steps) {}

void StopWithoutProgressHook::check(const RunNames& names) const { require_metric(names, metric_); }

void StopWithoutProgressHook::begin(HookContext& context) { context.declare_state(*this, "best", best_); }

void StopWithoutProgressHook::after_run(HookContext& context, const StepResult& result) {
  const auto entry = news(context.eval_metrics(), seen_version_, metric_, result.step);
  if (!entry || entry->step < min_steps_) return;
  const bool better = best_[1] < 0 || (increase_ ? entry->value > best_[0] : entry->value < best_[0]);
  if (better && entry->value == entry->value) {
    best_[0] = entry->value;
    best_[1] = static_cast<double>(entry->step);
  } else if (best_[1] >= 0 &&
             static_cast<double>(entry->step) - best_[1] >= static_cast<double>(max_steps_)) {
    context.stop_for_good(fmt::format("{} has not {} since step {}, where it was {}", metric_,
                                      increase_ ? "increased" : "decreased", best_[1],
                                      number_text(best_[0])));
  }
}

}  // namespace lockstep
