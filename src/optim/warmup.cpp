// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/warmup.h"

#include <cmath>

#include "config/named_options.h"

namespace lockstep {

namespace {

double linear(double x, double start) { return start + (1 - start) * x; }
double exponential(double x, double start) { return std::pow(start, 1 - x); }
double constant(double, double start) { return start; }

constexpr std::string_view kStartHelp = "factor at the first step";
constexpr ParamSpec kSteps = {"steps", ParamType::real, kRequired, "(0, 1e12]",
                              "how long it takes, in the unit"};
constexpr ParamSpec kUnit = {"unit", ParamType::string, "null", "steps|epochs|samples or null",
                             "unit of steps; null: that of the schedule"};
constexpr ParamSpec kOverlap = {
    "overlap", ParamType::boolean, "false", "",
    "the schedule's time runs during the warm-up; false: it begins after it, and the warm-up rises to its "
    "first value"};
constexpr ParamSpec kLinear[] = {
    kSteps, {"start_factor", ParamType::real, "0", "[0, 1]", kStartHelp}, kUnit, kOverlap};
constexpr ParamSpec kExponential[] = {
    kSteps, {"start_factor", ParamType::real, "0.01", "(0, 1]", kStartHelp}, kUnit, kOverlap};
constexpr ParamSpec kConstant[] = {
    kSteps, {"start_factor", ParamType::real, "0.1", "[0, 1]", "factor until the end"}, kUnit, kOverlap};

constexpr WarmUpEntry kTable[] = {
    {"linear", "factor start_factor + (1 - start_factor) * t / steps (Goyal et al. 2017)", kLinear, linear},
    {"exponential", "factor start_factor ^ (1 - t / steps)", kExponential, exponential},
    {"constant", "factor start_factor (He et al. 2016)", kConstant, constant},
};

}  // namespace

TimeUnit time_unit(std::string_view name) {
  return name == "epochs" ? TimeUnit::epochs : name == "samples" ? TimeUnit::samples : TimeUnit::steps;
}

double time_of(TimeUnit unit, std::int64_t step, const ScheduleRun& run) {
  if (unit == TimeUnit::steps) return static_cast<double>(step);
  LOCKSTEP_CHECK(run.steps_per_epoch > 0, "a schedule in epochs or samples needs ScheduledNumber::begin()");
  if (unit == TimeUnit::epochs) return static_cast<double>(step) / static_cast<double>(run.steps_per_epoch);
  return static_cast<double>(step / run.steps_per_epoch) * static_cast<double>(run.samples_per_epoch) +
         static_cast<double>(step % run.steps_per_epoch) * static_cast<double>(run.batch_size);
}

std::span<const WarmUpEntry> warmup_table() { return kTable; }

WarmUp make_warmup(const Node& node, TimeUnit unit) {
  const NamedOptions named = named_options(node, "warm-up");
  const WarmUpEntry& entry = find_entry(warmup_table(), named, "warm-up");
  const Params p(named.options, entry.table, "warm-up " + named.name);
  return {.shape = entry.shape,
          .length = p.real("steps"),
          .start_factor = p.real("start_factor"),
          .unit = p.has("unit") ? time_unit(p.string("unit")) : unit,
          .overlap = p.boolean("overlap")};
}

}  // namespace lockstep
