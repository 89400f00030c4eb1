// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// polynomial_decay: TensorFlow 1, learning_rate_decay, in the same order of operations.
#include <algorithm>
#include <cmath>

#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class PolynomialDecay final : public Schedule {
 public:
  explicit PolynomialDecay(const Params& p)
      : initial_(p.real("initial")),
        decay_steps_(p.real("decay_steps")),
        last_(p.real("last")),
        power_(p.real("power")),
        cycle_(p.boolean("cycle")) {}
  double at(double time) const override {
    double length = decay_steps_;
    if (!cycle_)
      time = std::min(time, length);
    else if (time > 0)
      length *= std::ceil(time / decay_steps_);
    return (initial_ - last_) * std::pow(1 - time / length, power_) + last_;
  }

 private:
  double initial_, decay_steps_, last_, power_;
  bool cycle_;
};

constexpr ParamSpec kTable[] = {
    {"initial", ParamType::real, kRequired, "[0, 1e30]", "value at time 0"},
    {"decay_steps", ParamType::real, kRequired, kTimeRange, "time at which the value is last"},
    {"last", ParamType::real, "0.0001", "[0, 1e30]", "value at decay_steps, and from then on without cycle"},
    {"power", ParamType::real, "1", "(0, 1e6]", "1: a straight line"},
    {"cycle", ParamType::boolean, "false", "",
     "after each decay_steps, begin again with a decay that lasts until its next multiple"},
};

}  // namespace

extern const ScheduleEntry kPolynomialDecaySchedule = {
    "polynomial_decay", "(initial - last) * (1 - time / decay_steps) ^ power + last", kTable,
    make_formula<PolynomialDecay>};

}  // namespace lockstep
