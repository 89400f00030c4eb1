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
 public:
  struct Options {
    double initial = 0, decay_rate = 0, decay_steps = 0;
    bool staircase = false;
  };
  explicit Exponent(const Options& options) : o_(options) {}

 protected:
  double exponent(double time) const {
    const double p = time / o_.decay_steps;
    return o_.staircase ? std::floor(p) : p;
  }

  Options o_;
};

class ExponentialDecay final : public Exponent {
 public:
  using Exponent::Exponent;
  double at(double time) const override { return o_.initial * std::pow(o_.decay_rate, exponent(time)); }
};

class NaturalExpDecay final : public Exponent {
 public:
  using Exponent::Exponent;
  double at(double time) const override { return o_.initial * std::exp(-o_.decay_rate * exponent(time)); }
};

class InverseTimeDecay final : public Exponent {
 public:
  using Exponent::Exponent;
  double at(double time) const override { return o_.initial / (1 + o_.decay_rate * exponent(time)); }
};

using Options = Exponent::Options;
constexpr ParamSpec kStaircase =
    option<&Options::staircase>("staircase", "false", {}, "in jumps instead of smoothly");
constexpr ParamSpec kExponential[] = {
    initial_option<&Options::initial>(),
    option<&Options::decay_steps>("decay_steps", kRequired, kTimeRange,
                                  "time in which the value is multiplied by decay_rate once"),
    option<&Options::decay_rate>("decay_rate", kRequired, above(0).up_to(1e6), "factor per decay_steps"),
    kStaircase,
};
constexpr ParamSpec kRated[] = {
    initial_option<&Options::initial>(),
    option<&Options::decay_steps>("decay_steps", kRequired, kTimeRange, "time in which p grows by 1"),
    option<&Options::decay_rate>("decay_rate", kRequired, above(0).up_to(1e6), "factor of p"),
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
