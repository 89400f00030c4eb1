// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// piecewise_constant (TensorFlow 1: a boundary belongs to the value before it) and step_decay (PyTorch's
// StepLR and MultiStepLR: a boundary belongs to the value after it).
#include <algorithm>
#include <cmath>

#include "optim/schedules/family.h"

namespace lockstep {

namespace {

/// Throws Error(config) if the times of an option do not increase.
void require_increasing(const std::vector<double>& times, const Params& p, std::string_view name) {
  for (std::size_t i = 1; i < times.size(); ++i)
    if (!(times[i] > times[i - 1]))
      throw p.error(name, fmt::format("{} does not come after {}", times[i], times[i - 1]),
                    "Each boundary must be larger than the one before it.");
}

class PiecewiseConstant final : public Schedule {
 public:
  struct Options {
    std::vector<double> boundaries, values;
  };
  PiecewiseConstant(const Options& options, const Params& p) : o_(options) {
    require_increasing(o_.boundaries, p, option_name<&Options::boundaries>(p));
    const std::size_t boundaries = o_.boundaries.size(), values = o_.values.size();
    if (values != boundaries + 1)
      throw p.error(option_name<&Options::values>(p),
                    fmt::format("there are {} values for {} boundaries", values, boundaries),
                    fmt::format("Give {} values: one more than boundaries.", boundaries + 1));
  }
  double at(double time) const override {
    const auto first = std::lower_bound(o_.boundaries.begin(), o_.boundaries.end(), time);
    return o_.values[static_cast<std::size_t>(first - o_.boundaries.begin())];
  }

 private:
  Options o_;
};

class StepDecay final : public Schedule {
 public:
  struct Options {
    double initial = 0, decay_rate = 0;
    std::optional<double> decay_steps;
    std::optional<std::vector<double>> boundaries;
  };
  StepDecay(const Options& options, const Params& p) : o_(options) {
    const std::string_view steps = option_name<&Options::decay_steps>(p),
                           boundaries = option_name<&Options::boundaries>(p);
    if (o_.boundaries.has_value() == o_.decay_steps.has_value())
      throw p.error(o_.boundaries ? boundaries : steps,
                    "exactly one of decay_steps and boundaries must be given",
                    "decay_steps: 30 is every 30; boundaries: [30, 60, 80] are single times.");
    if (!o_.boundaries) return;
    boundaries_ = *o_.boundaries;
    require_increasing(boundaries_, p, boundaries);
  }
  double at(double time) const override {
    const auto passed = std::upper_bound(boundaries_.begin(), boundaries_.end(), time) - boundaries_.begin();
    return o_.initial * std::pow(o_.decay_rate, boundaries_.empty()
                                                    ? std::floor(time / o_.decay_steps.value_or(0))
                                                    : static_cast<double>(passed));
  }

 private:
  Options o_;
  std::vector<double> boundaries_;
};

using Piecewise = PiecewiseConstant::Options;
constexpr ParamSpec kPiecewise[] = {
    option<&Piecewise::boundaries>("boundaries", kRequired, between(0, 1e15), "increasing times"),
    option<&Piecewise::values>("values", kRequired, between(0, 1e30),
                               "one more than boundaries: values[i] until boundaries[i], that time included, "
                               "and the last one from then on"),
};
using Step = StepDecay::Options;
constexpr ParamSpec kStep[] = {
    initial_option<&Step::initial>(),
    option<&Step::decay_rate>("decay_rate", "0.1", above(0).up_to(1e6), "factor of each step"),
    option<&Step::decay_steps>("decay_steps", "null", above(0).up_to(1e15).or_null(),
                               "time between two steps"),
    option<&Step::boundaries>("boundaries", "null", between(0, 1e15).or_null(),
                              "in place of decay_steps: increasing times of the steps"),
};

}  // namespace

extern const ScheduleEntry kPiecewiseConstantSchedule = {
    "piecewise_constant", "a value for each interval of time", kPiecewise, make_formula<PiecewiseConstant>};
extern const ScheduleEntry kStepDecaySchedule = {
    "step_decay", "initial * decay_rate ^ (number of steps down so far)", kStep, make_formula<StepDecay>};

}  // namespace lockstep
