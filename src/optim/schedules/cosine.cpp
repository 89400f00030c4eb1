// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_decay and cosine_restarts: Loshchilov and Hutter 2017 (SGDR), arXiv:1608.03983, as TensorFlow 1's
// learning_rate_decay computes them, in the same order of operations.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class CosineDecay final : public Schedule {
 public:
  struct Options {
    double initial = 0, alpha = 0;
    std::optional<double> decay_steps;
  };
  explicit CosineDecay(const Options& options) : o_(options), length_(options.decay_steps) {}
  void set_end(double time) override { length_.set_end(time); }
  double at(double time) const override {
    const double length = length_.time();
    const double completed = std::min(time, length) / length;
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * completed));
    return o_.initial * ((1 - o_.alpha) * cosine + o_.alpha);
  }

 private:
  Options o_;
  DecayLength length_;
};

class CosineRestarts final : public Schedule {
 public:
  struct Options {
    double initial = 0, first_decay_steps = 0, t_mul = 0, m_mul = 0, alpha = 0;
  };
  explicit CosineRestarts(const Options& options) : o_(options) {}
  double at(double time) const override {
    double completed = time / o_.first_decay_steps;  // in units of the first period
    double period = std::floor(completed);
    if (o_.t_mul == 1) {
      completed -= period;
    } else {
      // The logarithm may miss a boundary by one rounding: the sums decide.
      period = std::max(0.0, std::floor(std::log(1 - completed * (1 - o_.t_mul)) / std::log(o_.t_mul)));
      if (begin_of(period) > completed) period -= 1;
      if (begin_of(period + 1) <= completed) period += 1;
      completed = (completed - begin_of(period)) / std::pow(o_.t_mul, period);
    }
    const double cosine = 0.5 * std::pow(o_.m_mul, period) * (1 + std::cos(std::numbers::pi * completed));
    return o_.initial * ((1 - o_.alpha) * cosine + o_.alpha);
  }

 private:
  double begin_of(double period) const { return (1 - std::pow(o_.t_mul, period)) / (1 - o_.t_mul); }

  Options o_;
};

template <auto kMember>
constexpr ParamSpec alpha_option() {
  return option<kMember>("alpha", "0", between(0, 1), "smallest value, as a share of initial");
}
using Decay = CosineDecay::Options;
constexpr ParamSpec kDecay[] = {
    initial_option<&Decay::initial>(),
    length_option<&Decay::decay_steps>(
        "decay_steps", "time at which the value is alpha * initial; null: the end of the run"),
    alpha_option<&Decay::alpha>(),
};
using Restarts = CosineRestarts::Options;
constexpr ParamSpec kRestarts[] = {
    initial_option<&Restarts::initial>(),
    option<&Restarts::first_decay_steps>("first_decay_steps", kRequired, kTimeRange,
                                         "length of the first period"),
    option<&Restarts::t_mul>("t_mul", "2", between(1, 1e6),
                             "each period is so many times as long as the one before"),
    option<&Restarts::m_mul>(
        "m_mul", "1", above(0).up_to(1e6),
        "each period begins so many times as high above alpha * initial as the one before"),
    alpha_option<&Restarts::alpha>(),
};

}  // namespace

extern const ScheduleEntry kCosineDecaySchedule = {
    "cosine_decay", "initial * ((1 - alpha) * (1 + cos(pi * time / decay_steps)) / 2 + alpha)",
    kDecay,         make_formula<CosineDecay>,
    false,          "decay_steps"};
extern const ScheduleEntry kCosineRestartsSchedule = {"cosine_restarts",
                                                      "cosine_decay again and again, in periods that grow",
                                                      kRestarts, make_formula<CosineRestarts>};

}  // namespace lockstep
