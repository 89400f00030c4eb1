// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/warmup.h"

#include <cmath>

#include "config/named_options.h"
#include "config/option.h"

namespace lockstep {

namespace {

double linear(double x, double start) { return start + (1 - start) * x; }
double exponential(double x, double start) { return std::pow(start, 1 - x); }
double constant(double, double start) { return start; }

struct Options {
  double steps = 0, start_factor = 0;
  std::optional<TimeUnit> unit;
  bool overlap = false;
};
constexpr ParamSpec kSteps =
    option<&Options::steps>("steps", kRequired, above(0).up_to(1e12), "how long it takes, in the unit");
constexpr ParamSpec start_factor(std::string_view fallback, OptionRange range,
                                 std::string_view help = "factor at the first step") {
  return option<&Options::start_factor>("start_factor", fallback, range, help);
}
constexpr ParamSpec kUnit =
    option<&Options::unit>("unit", "null", kTimeUnits.or_null(), "unit of steps; null: that of the schedule");
constexpr ParamSpec kOverlap = option<&Options::overlap>(
    "overlap", "false", {},
    "the schedule's time runs during the warm-up; false: it begins after it, and the warm-up rises to its "
    "first value");
constexpr ParamSpec kLinear[] = {kSteps, start_factor("0", between(0, 1)), kUnit, kOverlap};
constexpr ParamSpec kExponential[] = {kSteps, start_factor("0.01", above(0).up_to(1)), kUnit, kOverlap};
constexpr ParamSpec kConstant[] = {kSteps, start_factor("0.1", between(0, 1), "factor until the end"), kUnit,
                                   kOverlap};

constexpr WarmUpEntry kLinearWarmUp = {
    "linear", "factor start_factor + (1 - start_factor) * t / steps (Goyal et al. 2017)", kLinear, linear};
constexpr WarmUpEntry kExponentialWarmUp = {"exponential", "factor start_factor ^ (1 - t / steps)",
                                            kExponential, exponential};
constexpr WarmUpEntry kConstantWarmUp = {"constant", "factor start_factor (He et al. 2016)", kConstant,
                                         constant};

}  // namespace

double time_of(TimeUnit unit, std::int64_t step, const ScheduleRun& run) {
  if (unit == TimeUnit::steps) return static_cast<double>(step);
  LOCKSTEP_CHECK(run.clock.knows_epochs(), "a schedule in epochs or samples needs ScheduledNumber::begin()");
  return unit == TimeUnit::epochs ? run.clock.epochs(step) : run.clock.samples(step);
}

Table<WarmUpEntry>& warmup_table() {
  static Table<WarmUpEntry> table("warm-up", {&kLinearWarmUp, &kExponentialWarmUp, &kConstantWarmUp});
  return table;
}

WarmUp make_warmup(const Node& node, TimeUnit unit) {
  const NamedOptions named = named_options(node, "warm-up");
  const WarmUpEntry& entry = warmup_table().at(named);
  const auto options = Params(named.options, entry.table, "warm-up " + named.name).as<Options>();
  return {.shape = entry.shape,
          .length = options.steps,
          .start_factor = options.start_factor,
          .unit = options.unit.value_or(unit),
          .overlap = options.overlap};
}

}  // namespace lockstep
