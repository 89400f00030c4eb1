// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/average_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/named_options.h"
#include "config/option.h"

namespace lockstep {

namespace {

using Statistics = AverageRule::Statistics;

/// Options of both averages.
struct StatisticsOptions {
  Statistics statistics = Statistics::last;
  std::optional<std::int64_t> batches;
};
template <auto... kPath>
constexpr ParamSpec statistics_option(std::string_view fallback) {
  return option<kPath..., &StatisticsOptions::statistics>(
      "statistics", fallback, one_of("last|average|recompute"),
      "moving statistics of batch norm with the averaged variables. last: those of the last step; average: "
      "their average; recompute: computed anew, by a pass over the training data before an evaluation and at "
      "the end");
}
template <auto... kPath>
constexpr ParamSpec batches_option() {
  return option<kPath..., &StatisticsOptions::batches>(
      "statistics_batches", "null", between(1, 1e12).or_null(),
      "with recompute: batches of that pass; null: an epoch");
}

struct Ema {
  ScheduledNumber decay;
  bool num_updates = false, zero_debias = false;
  std::int64_t start_step = 0, every_steps = 1;
  StatisticsOptions statistics;
};
constexpr ParamSpec kEma[] = {
    option<&Ema::decay>("decay", "0.999", kShareRange, "share of the old average in the new one"),
    option<&Ema::num_updates>("num_updates", "false", {},
                              "the decay of update n is at most (1 + n) / (10 + n), so that the average "
                              "follows the variables while it is young"),
    option<&Ema::zero_debias>("zero_debias", "false", {},
                              "the average begins with the first update instead of the values at start_step: "
                              "weight (1 - d) / (1 - d^n)"),
    option<&Ema::start_step>(
        "start_step", "0", between(0, 1e12),
        "the average begins with the variables after this step. Until then the variables are used"),
    option<&Ema::every_steps>("every_steps", "1", between(1, 1e12),
                              "steps between two updates of the average"),
    statistics_option<&Ema::statistics>("last"),
    batches_option<&Ema::statistics>(),
};

struct Swa {
  std::optional<std::int64_t> start_epoch, start_step, every_epochs, every_steps;
  StatisticsOptions statistics;
};
constexpr ParamSpec kSwa[] = {
    option<&Swa::start_epoch>("start_epoch", "null", between(0, 1e9).or_null(),
                              "the mean begins after this epoch; or give start_step"),
    option<&Swa::start_step>("start_step", "null", between(0, 1e12).or_null(),
                             "the mean begins after this step"),
    option<&Swa::every_epochs>("every_epochs", "null", between(1, 1e9).or_null(),
                               "epochs between two updates; the default is 1 unless every_steps is given"),
    option<&Swa::every_steps>("every_steps", "null", between(1, 1e12).or_null(), "steps between two updates"),
    statistics_option<&Swa::statistics>("recompute"),
    batches_option<&Swa::statistics>(),
};

/// `batches_name`: the option's.
void settle_statistics(const Params& p, const StatisticsOptions& written, std::string_view batches_name,
                       AverageRule& rule) {
  rule.statistics = written.statistics;
  if (written.batches && !rule.recomputes())
    throw p.error(batches_name,
                  fmt::format("it has no effect with statistics: {}",
                              written.statistics == Statistics::average ? "average" : "last"),
                  "Add statistics: recompute, or remove it.");
  rule.batches = written.batches.value_or(0);
}

AverageOptions ema(const Params& p) {
  auto written = p.as<Ema>();
  const bool is_scheduled = !written.decay.schedule().empty();
  const float decay = is_scheduled ? 0 : static_cast<float>(written.decay.at(0));
  if (!(decay < 1)) throw written.decay.error("'decay' is 1 when rounded to float32");
  std::shared_ptr<ScheduledNumber> schedule;
  if (is_scheduled) {
    written.decay.set_option("average/decay");
    schedule = std::make_shared<ScheduledNumber>(std::move(written.decay));
  }
  const std::string_view zero_debias = option_name<&Ema::zero_debias>(p);
  if (written.num_updates && written.zero_debias)
    throw p.error(option_to_blame(p, {option_name<&Ema::num_updates>(p), zero_debias}),
                  "num_updates and zero_debias are both given",
                  "Give one of them: both say how a young average begins.");
  if (schedule && written.zero_debias)
    throw p.error(zero_debias, "zero_debias needs a decay that stays the same",
                  "Give decay a number, or use num_updates: true.");
  AverageOptions options{.rule = {.kind = AverageRule::Kind::ema,
                                  .decay = decay,
                                  .schedule = std::move(schedule),
                                  .start = written.num_updates   ? AverageRule::Start::num_updates
                                           : written.zero_debias ? AverageRule::Start::zero_debias
                                                                 : AverageRule::Start::decay,
                                  .first = written.start_step,
                                  .every = written.every_steps}};
  settle_statistics(p, written.statistics, option_name<&Ema::statistics, &StatisticsOptions::batches>(p),
                    options.rule);
  return options;
}

AverageOptions swa(const Params& p) {
  const auto written = p.as<Swa>();
  const auto& [start_epoch, start_step, every_epochs, every_steps, statistics] = written;
  const std::string_view epoch_name = option_name<&Swa::start_epoch>(p);
  if (start_epoch.has_value() == start_step.has_value())
    throw p.error(
        start_epoch ? option_to_blame(p, {epoch_name, option_name<&Swa::start_step>(p)}) : epoch_name,
        start_epoch ? "both start_epoch and start_step are given"
                    : "neither start_epoch nor start_step is given",
        "Give one of them: the mean begins there, often after three quarters of the run.");
  if (every_epochs && every_steps)
    throw p.error(option_to_blame(p, {option_name<&Swa::every_epochs>(p), option_name<&Swa::every_steps>(p)}),
                  "both every_epochs and every_steps are given", "Give one of them.");
  AverageOptions options{.rule = {.kind = AverageRule::Kind::swa,
                                  .first = start_step.value_or(0),
                                  .every = every_steps.value_or(1)},
                         .first_epoch = start_epoch};
  settle_statistics(p, statistics, option_name<&Swa::statistics, &StatisticsOptions::batches>(p),
                    options.rule);
  if (!every_steps) options.every_epochs = every_epochs.value_or(1);
  return options;
}

constexpr AverageEntry kEmaAverage = {"ema", "exponential moving average", kEma, ema};
constexpr AverageEntry kSwaAverage = {
    "swa", "stochastic weight averaging: the mean of the variables at points of the run", kSwa, swa};

}  // namespace

float AverageRule::decay_at(std::int64_t step) const {
  if (!schedule) return decay;
  return std::min(static_cast<float>(schedule->at(step - 1)), 0x1.fffffep-1F);  // below 1 when rounded
}

float AverageRule::weight(std::int64_t update, std::int64_t step) const {
  const auto n = static_cast<double>(update);
  if (kind == Kind::swa) return static_cast<float>(1.0 / (n + 1));
  if (start == Start::num_updates) {
    const auto count = static_cast<float>(update);
    return 1.0F - std::min(decay_at(step), (1.0F + count) / (10.0F + count));
  }
  if (start == Start::zero_debias) {
    const double d = decay;
    return static_cast<float>((1 - d) / (1 - std::pow(d, n)));
  }
  return 1.0F - decay_at(step);
}

std::string AverageRule::describe() const {
  std::string text = kind == Kind::swa
                         ? "mean of the variables"
                         : fmt::format("exponential with decay {}{}",
                                       schedule ? "by " + schedule->schedule() : fmt::format("{}", decay),
                                       start == Start::num_updates   ? ", smaller at first"
                                       : start == Start::zero_debias ? ", without bias to its start"
                                                                     : "");
  text += fmt::format(", from step {} on after every {}", first,
                      every == 1 ? "step" : fmt::format("{} steps", every));
  if (statistics == Statistics::average) text += ", with moving statistics";
  if (recomputes())
    text += fmt::format(", moving statistics computed anew from {} of the training data",
                        batches == 0 ? "an epoch" : fmt::format("{} batches", batches));
  return text;
}

AverageRule AverageOptions::resolved(const RunClock& clock) const {
  AverageRule resolved = rule;
  resolved.begins = first_epoch ? fmt::format("epoch {}", *first_epoch) : fmt::format("step {}", rule.first);
  if (first_epoch) resolved.first = clock.step_of_epoch(*first_epoch);
  if (!every_epochs) return resolved;
  resolved.every = *every_epochs * clock.shape().steps;
  if (!first_epoch) return resolved;
  // Epochs may have had another length before: updates lie at ends of present ones.
  const auto now = static_cast<std::int64_t>(clock.epochs(clock.changed_at()));
  const std::int64_t updates = std::max<std::int64_t>(now - *first_epoch, 0) / *every_epochs + 1;
  resolved.phase = clock.step_of_epoch(*first_epoch + updates * *every_epochs);
  return resolved;
}

Table<AverageEntry>& average_table() {
  static Table<AverageEntry> table("average", {&kEmaAverage, &kSwaAverage});
  return table;
}

std::optional<AverageOptions> average_options(const Node& node) {
  if (is_null(node)) return std::nullopt;
  const NamedOptions named = named_options(node, "average");
  const AverageEntry& entry = average_table().at(named);
  ErrorCollector mistakes;
  const Params params(named.options, entry.table, "average " + std::string(named.name), mistakes);
  AverageOptions options;
  mistakes.attempt([&] { options = entry.make(params); });
  mistakes.throw_if_any();
  return options;
}

}  // namespace lockstep
