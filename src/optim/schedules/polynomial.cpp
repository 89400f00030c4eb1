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
  struct Options {
    double initial = 0, last = 0, power = 0;
    std::optional<double> decay_steps;
    bool cycle = false;
  };
  explicit PolynomialDecay(const Options& options) : o_(options), length_(options.decay_steps) {}
  void set_end(double time) override { length_.set_end(time); }
  double at(double time) const override {
    double length = length_.time();
    if (!o_.cycle)
      time = std::min(time, length);
    else if (time > 0)
      length *= std::ceil(time / length);
    return (o_.initial - o_.last) * std::pow(1 - time / length, o_.power) + o_.last;
  }

 private:
  Options o_;
  DecayLength length_;
};

using Options = PolynomialDecay::Options;
constexpr ParamSpec kTable[] = {
    option<&Options::initial>("initial", kRequired, between(0, 1e30), "value at time 0"),
    length_option<&Options::decay_steps>("decay_steps",
                                         "time at which the value is last; null: the end of the run"),
    option<&Options::last>("last", "0.0001", between(0, 1e30),
                           "value at decay_steps, and from then on without cycle"),
    option<&Options::power>("power", "1", above(0).up_to(1e6), "1: a straight line"),
    option<&Options::cycle>("cycle", "false", {},
                            "after each decay_steps, begin again with a decay that lasts until its next "
                            "multiple"),
};

}  // namespace

extern const ScheduleEntry kPolynomialDecaySchedule = {
    "polynomial_decay",
    "(initial - last) * (1 - time / decay_steps) ^ power + last",
    kTable,
    make_formula<PolynomialDecay>,
    false,
    "decay_steps"};

}  // namespace lockstep
