// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// exponential_decay, natural_exp_decay, inverse_time_decay: functions of the exponent p = time / decay_steps,
// which staircase rounds down. TensorFlow 1, learning_rate_decay: same names, same order of operations.
#include <cmath>

#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class Exponent : public Schedule {
 protected:
  explicit Exponent(const Params& p)
      : initial_(p.real("initial")),
        decay_rate_(p.real("decay_rate")),
        decay_steps_(p.real("decay_steps")),
        staircase_(p.boolean("staircase")) {}
  double exponent(double time) const {
    const double p = time / decay_steps_;
    return staircase_ ? std::floor(p) : p;
  }

  double initial_, decay_rate_;

 private:
  double decay_steps_;
  bool staircase_;
};

class ExponentialDecay final : public Exponent {
 public:
  explicit ExponentialDecay(const Params& p) : Exponent(p) {}
  double at(double time) const override { return initial_ * std::pow(decay_rate_, exponent(time)); }
};

class NaturalExpDecay final : public Exponent {
 public:
  explicit NaturalExpDecay(const Params& p) : Exponent(p) {}
  double at(double time) const override { return initial_ * std::exp(-decay_rate_ * exponent(time)); }
};

class InverseTimeDecay final : public Exponent {
 public:
  explicit InverseTimeDecay(const Params& p) : Exponent(p) {}
  double at(double time) const override { return initial_ / (1 + decay_rate_ * exponent(time)); }
};

constexpr ParamSpec kStaircase = {"staircase", ParamType::boolean, "false", "",
                                  "in jumps instead of smoothly"};
constexpr ParamSpec kExponential[] = {
    kInitialOption,
    {"decay_steps", ParamType::real, kRequired, kTimeRange,
     "time in which the value is multiplied by decay_rate once"},
    {"decay_rate", ParamType::real, kRequired, "(0, 1e6]", "factor per decay_steps"},
    kStaircase,
};
constexpr ParamSpec kRated[] = {
    kInitialOption,
    {"decay_steps", ParamType::real, kRequired, kTimeRange, "time in which p grows by 1"},
    {"decay_rate", ParamType::real, kRequired, "(0, 1e6]", "factor of p"},
    kStaircase,
};

}  // namespace

extern const ScheduleEntry kExponentialDecaySchedule = {"exponential_decay",
                                                        "initial * decay_rate ^ (time / decay_steps)",
                                                        kExponential, make_formula<ExponentialDecay>};
extern const ScheduleEntry kNaturalExpDecaySchedule = {
    "natural_exp_decay", "initial * exp(-decay_rate * p), where p = time / decay_steps", kRated,
    make_formula<NaturalExpDecay>};
extern const ScheduleEntry kInverseTimeDecaySchedule = {
    "inverse_time_decay", "initial / (1 + decay_rate * p), where p = time / decay_steps", kRated,
    make_formula<InverseTimeDecay>};

}  // namespace lockstep
