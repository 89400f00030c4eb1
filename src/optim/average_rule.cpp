// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/average_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/named_options.h"
#include "config/param_reader.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr OptionRange kStatisticsChoices = one_of("last|average|recompute");
constexpr std::string_view kStatistics =
    "moving statistics of batch norm with the averaged variables. last: those of the last step; average: "
    "their average; recompute: computed anew, by a pass over the training data before an evaluation and at "
    "the end";
constexpr ParamSpec kBatches = {"statistics_batches", integer, "null", between(1, 1e12).or_null(),
                                "with recompute: batches of that pass; null: an epoch"};

constexpr ParamSpec kEma[] = {
    {"decay", node, "0.999", kShareRange, "share of the old average in the new one"},
    {"num_updates",
     boolean,
     "false",
     {},
     "the decay of update n is at most (1 + n) / (10 + n), so that the average follows the variables while "
     "it is "
     "young"},
    {"zero_debias",
     boolean,
     "false",
     {},
     "the average begins with the first update instead of the values at start_step: weight (1 - d) / (1 - "
     "d^n)"},
    {"start_step", integer, "0", between(0, 1e12),
     "the average begins with the variables after this step. Until then the variables are used"},
    {"every_steps", integer, "1", between(1, 1e12), "steps between two updates of the average"},
    {"statistics", string, "last", kStatisticsChoices, kStatistics},
    kBatches,
};

constexpr ParamSpec kSwa[] = {
    {"start_epoch", integer, "null", between(0, 1e9).or_null(),
     "the mean begins after this epoch; or give start_step"},
    {"start_step", integer, "null", between(0, 1e12).or_null(), "the mean begins after this step"},
    {"every_epochs", integer, "null", between(1, 1e9).or_null(),
     "epochs between two updates; the default is 1 unless every_steps is given"},
    {"every_steps", integer, "null", between(1, 1e12).or_null(), "steps between two updates"},
    {"statistics", string, "recompute", kStatisticsChoices, kStatistics},
    kBatches,
};

void read_statistics(const Params& p, AverageRule& rule) {
  using enum AverageRule::Statistics;
  const std::string& name = p.string("statistics");
  rule.statistics = name == "average" ? average : name == "recompute" ? recompute : last;
  const auto batches = p.optional_integer("statistics_batches");
  if (batches && !rule.recomputes())
    throw p.error("statistics_batches", fmt::format("it has no effect with statistics: {}", name),
                  "Add statistics: recompute, or remove it.");
  rule.batches = batches.value_or(0);
}

AverageOptions ema(const Params& p) {
  const ParamSpec spec{"decay", real, kRequired, kShareRange, "a number, or a schedule with its options"};
  std::shared_ptr<ScheduledNumber> schedule;
  float decay = 0;
  if (const auto number = plain_number(p.node("decay"), spec, p.subject(), p.where("decay"))) {
    decay = static_cast<float>(*number);
    if (!(decay < 1)) throw p.error("decay", "'decay' is 1 when rounded to float32");
  } else {
    schedule = std::make_shared<ScheduledNumber>(p.node("decay"), "average/decay", kShareRange,
                                                 p.where("decay"), p.subject());
  }
  const bool num_updates = p.boolean("num_updates"), zero_debias = p.boolean("zero_debias");
  if (num_updates && zero_debias)
    throw p.error(option_to_blame(p, {"num_updates", "zero_debias"}),
                  "num_updates and zero_debias are both given",
                  "Give one of them: both say how a young average begins.");
  if (schedule && zero_debias)
    throw p.error("zero_debias", "zero_debias needs a decay that stays the same",
                  "Give decay a number, or use num_updates: true.");
  AverageOptions options{.rule = {.kind = AverageRule::Kind::ema,
                                  .decay = decay,
                                  .schedule = std::move(schedule),
                                  .start = num_updates   ? AverageRule::Start::num_updates
                                           : zero_debias ? AverageRule::Start::zero_debias
                                                         : AverageRule::Start::decay,
                                  .first = p.integer("start_step"),
                                  .every = p.integer("every_steps")}};
  read_statistics(p, options.rule);
  return options;
}

AverageOptions swa(const Params& p) {
  const auto epoch = p.optional_integer("start_epoch"), step = p.optional_integer("start_step"),
             every_epochs = p.optional_integer("every_epochs"),
             every_steps = p.optional_integer("every_steps");
  if (epoch.has_value() == step.has_value())
    throw p.error(
        epoch ? option_to_blame(p, {"start_epoch", "start_step"}) : "start_epoch",
        epoch ? "both start_epoch and start_step are given" : "neither start_epoch nor start_step is given",
        "Give one of them: the mean begins there, often after three quarters of the run.");
  if (every_epochs && every_steps)
    throw p.error(option_to_blame(p, {"every_epochs", "every_steps"}),
                  "both every_epochs and every_steps are given", "Give one of them.");
  AverageOptions options{
      .rule = {.kind = AverageRule::Kind::swa, .first = step.value_or(0), .every = every_steps.value_or(1)},
      .first_epoch = epoch};
  read_statistics(p, options.rule);
  if (!every_steps) options.every_epochs = every_epochs.value_or(1);
  return options;
}

constexpr AverageEntry kTable[] = {
    {"ema", "exponential moving average", kEma, ema},
    {"swa", "stochastic weight averaging: the mean of the variables at points of the run", kSwa, swa},
};

}  // namespace

float AverageRule::decay_at(std::int64_t step) const {
  if (!schedule) return decay;
  return std::min(static_cast<float>(schedule->at(step - 1)), 0x1.fffffep-1F);  // below 1 when rounded
}

std::optional<float> AverageRule::weight(std::int64_t step) const {
  if (step <= first || (step - first) % every != 0) return std::nullopt;
  const std::int64_t n = (step - first) / every;  // from 1
  if (kind == Kind::swa) return static_cast<float>(1.0 / static_cast<double>(n + 1));
  switch (start) {
    case Start::decay:
      return 1.0F - decay_at(step);
    case Start::num_updates: {
      const auto count = static_cast<float>(n);
      return 1.0F - std::min(decay_at(step), (1.0F + count) / (10.0F + count));
    }
    case Start::zero_debias: {
      const double d = decay;
      return static_cast<float>((1 - d) / (1 - std::pow(d, static_cast<double>(n))));
    }
  }
  return std::nullopt;
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

AverageRule AverageOptions::resolved(std::int64_t steps_per_epoch) const {
  AverageRule resolved = rule;
  if (first_epoch) resolved.first = *first_epoch * steps_per_epoch;
  if (every_epochs) resolved.every = *every_epochs * steps_per_epoch;
  return resolved;
}

std::span<const AverageEntry> average_table() { return kTable; }

std::optional<AverageOptions> average_options(const Node& node) {
  if (is_null(node)) return std::nullopt;
  const NamedOptions named = named_options(node, "average");
  const AverageEntry& entry = find_entry(average_table(), named, "average");
  ErrorCollector mistakes;
  const Params params(named.options, entry.table, "average " + std::string(named.name), mistakes);
  AverageOptions options;
  mistakes.attempt([&] { options = entry.make(params); });
  mistakes.throw_if_any();
  return options;
}

}  // namespace lockstep
