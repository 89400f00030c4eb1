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

std::vector<double> increasing(const Params& p, std::string_view name) {
  const std::vector<double>& times = p.reals(name);
  for (std::size_t i = 1; i < times.size(); ++i)
    if (!(times[i] > times[i - 1]))
      throw p.error(name, fmt::format("{} does not come after {}", times[i], times[i - 1]),
                    "Each boundary must be larger than the one before it.");
  return times;
}

class PiecewiseConstant final : public Schedule {
 public:
  explicit PiecewiseConstant(const Params& p)
      : boundaries_(increasing(p, "boundaries")), values_(p.reals("values")) {
    if (values_.size() != boundaries_.size() + 1)
      throw p.error("values",
                    fmt::format("there are {} values for {} boundaries", values_.size(), boundaries_.size()),
                    fmt::format("Give {} values: one more than boundaries.", boundaries_.size() + 1));
  }
  double at(double time) const override {
    const auto first = std::lower_bound(boundaries_.begin(), boundaries_.end(), time);
    return values_[static_cast<std::size_t>(first - boundaries_.begin())];
  }

 private:
  std::vector<double> boundaries_, values_;
};

class StepDecay final : public Schedule {
 public:
  explicit StepDecay(const Params& p) : initial_(p.real("initial")), decay_rate_(p.real("decay_rate")) {
    if (p.has("boundaries") == p.has("decay_steps"))
      throw p.error(p.has("boundaries") ? "boundaries" : "decay_steps",
                    "exactly one of decay_steps and boundaries must be given",
                    "decay_steps: 30 is every 30; boundaries: [30, 60, 80] are single times.");
    if (p.has("boundaries"))
      boundaries_ = increasing(p, "boundaries");
    else
      decay_steps_ = p.real("decay_steps");
  }
  double at(double time) const override {
    const auto passed = std::upper_bound(boundaries_.begin(), boundaries_.end(), time) - boundaries_.begin();
    return initial_ * std::pow(decay_rate_, boundaries_.empty() ? std::floor(time / decay_steps_)
                                                                : static_cast<double>(passed));
  }

 private:
  double initial_, decay_rate_, decay_steps_ = 0;
  std::vector<double> boundaries_;
};

constexpr ParamSpec kPiecewise[] = {
    {"boundaries", ParamType::reals, kRequired, "[0, 1e15]", "increasing times"},
    {"values", ParamType::reals, kRequired, "[0, 1e30]",
     "one more than boundaries: values[i] until boundaries[i], that time included, and the last one from "
     "then "
     "on"},
};
constexpr ParamSpec kStep[] = {
    kInitialOption,
    {"decay_rate", ParamType::real, "0.1", "(0, 1e6]", "factor of each step"},
    {"decay_steps", ParamType::real, "null", "(0, 1e15] or null", "time between two steps"},
    {"boundaries", ParamType::reals, "null", "[0, 1e15] or null",
     "in place of decay_steps: increasing times of the steps"},
};

}  // namespace

extern const ScheduleEntry kPiecewiseConstantSchedule = {
    "piecewise_constant", "a value for each interval of time", kPiecewise, make_formula<PiecewiseConstant>};
extern const ScheduleEntry kStepDecaySchedule = {
    "step_decay", "initial * decay_rate ^ (number of steps down so far)", kStep, make_formula<StepDecay>};

}  // namespace lockstep
