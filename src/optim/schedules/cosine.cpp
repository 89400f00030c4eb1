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
  explicit CosineDecay(const Params& p)
      : initial_(p.real("initial")), decay_steps_(p.real("decay_steps")), alpha_(p.real("alpha")) {}
  double at(double time) const override {
    const double completed = std::min(time, decay_steps_) / decay_steps_;
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * completed));
    return initial_ * ((1 - alpha_) * cosine + alpha_);
  }

 private:
  double initial_, decay_steps_, alpha_;
};

class CosineRestarts final : public Schedule {
 public:
  explicit CosineRestarts(const Params& p)
      : initial_(p.real("initial")),
        first_(p.real("first_decay_steps")),
        t_mul_(p.real("t_mul")),
        m_mul_(p.real("m_mul")),
        alpha_(p.real("alpha")) {}
  double at(double time) const override {
    double completed = time / first_;  // in units of the first period
    double period = std::floor(completed);
    if (t_mul_ == 1) {
      completed -= period;
    } else {
      // The logarithm may miss a boundary by one rounding: the sums decide.
      period = std::max(0.0, std::floor(std::log(1 - completed * (1 - t_mul_)) / std::log(t_mul_)));
      if (begin_of(period) > completed) period -= 1;
      if (begin_of(period + 1) <= completed) period += 1;
      completed = (completed - begin_of(period)) / std::pow(t_mul_, period);
    }
    const double cosine = 0.5 * std::pow(m_mul_, period) * (1 + std::cos(std::numbers::pi * completed));
    return initial_ * ((1 - alpha_) * cosine + alpha_);
  }

 private:
  double begin_of(double period) const { return (1 - std::pow(t_mul_, period)) / (1 - t_mul_); }

  double initial_, first_, t_mul_, m_mul_, alpha_;
};

constexpr ParamSpec kAlpha = {"alpha", ParamType::real, "0", "[0, 1]",
                              "smallest value, as a share of initial"};
constexpr ParamSpec kDecay[] = {
    kInitialOption,
    {"decay_steps", ParamType::real, kRequired, kTimeRange, "time at which the value is alpha * initial"},
    kAlpha,
};
constexpr ParamSpec kRestarts[] = {
    kInitialOption,
    {"first_decay_steps", ParamType::real, kRequired, kTimeRange, "length of the first period"},
    {"t_mul", ParamType::real, "2", "[1, 1e6]", "each period is so many times as long as the one before"},
    {"m_mul", ParamType::real, "1", "(0, 1e6]",
     "each period begins with so many times the value of the one before"},
    kAlpha,
};

}  // namespace

extern const ScheduleEntry kCosineDecaySchedule = {
    "cosine_decay", "initial * ((1 - alpha) * (1 + cos(pi * time / decay_steps)) / 2 + alpha)", kDecay,
    make_formula<CosineDecay>};
extern const ScheduleEntry kCosineRestartsSchedule = {"cosine_restarts",
                                                      "cosine_decay again and again, in periods that grow",
                                                      kRestarts, make_formula<CosineRestarts>};

}  // namespace lockstep
