// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// linear_cosine_decay and noisy_linear_cosine_decay: Bello et al. 2017 (Neural Optimizer Search),
// arXiv:1709.07417, as TensorFlow 1's learning_rate_decay computes them, in the same order of operations.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/philox.h"
#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class LinearCosineDecay : public Schedule {
 public:
  explicit LinearCosineDecay(const Params& p)
      : initial_(p.real("initial")),
        decay_steps_(p.real("decay_steps")),
        num_periods_(p.real("num_periods")),
        alpha_(p.real("alpha")),
        beta_(p.real("beta")) {}
  double at(double time) const override { return value(std::min(time, decay_steps_), 0); }

 protected:
  double decay_steps() const { return decay_steps_; }
  /// With a number added to the linear part.
  double value(double time, double noise) const {
    const double linear = (decay_steps_ - time) / decay_steps_ + noise;
    const double fraction = 2 * num_periods_ * (time / decay_steps_);
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * fraction));
    return initial_ * ((alpha_ + linear) * cosine + beta_);
  }

 private:
  double initial_, decay_steps_, num_periods_, alpha_, beta_;
};

/// The noise is a function of the run's seed, the option's name and the time: the same on all ranks and after
/// a resume. A value that it makes negative becomes 0: an update must not climb.
class NoisyLinearCosineDecay final : public LinearCosineDecay {
 public:
  explicit NoisyLinearCosineDecay(const Params& p)
      : LinearCosineDecay(p),
        initial_variance_(p.real("initial_variance")),
        variance_decay_(p.real("variance_decay")) {}
  void begin(const ScheduleRun& run, std::string_view option) override {
    seed_ = run.seed;
    purpose_ = philox_purpose(fmt::format("schedule/{}", option));
  }
  double at(double time) const override {
    const double counted = std::min(time, decay_steps());
    const double deviation = std::sqrt(initial_variance_ / std::pow(1 + counted, variance_decay_));
    const auto bits = std::bit_cast<std::uint64_t>(time);
    const PhiloxBlock words = philox_words(seed_, purpose_, static_cast<std::uint32_t>(bits),
                                           static_cast<std::uint32_t>(bits >> 32), 0);
    return std::max(0.0, value(counted, deviation * philox_normal(words[0], words[1])[0]));
  }

 private:
  double initial_variance_, variance_decay_;
  std::uint64_t seed_ = 0;
  std::uint32_t purpose_ = philox_purpose("schedule");
};

constexpr ParamSpec kDecaySteps = {"decay_steps", ParamType::real, kRequired, kTimeRange,
                                   "time at which the linear part is 0"};
constexpr ParamSpec kPeriods = {"num_periods", ParamType::real, "0.5", "(0, 1e6]", "periods of the cosine"};
constexpr ParamSpec kAlpha = {"alpha", ParamType::real, "0", "[0, 1e30]", "added to the linear part"};
constexpr ParamSpec kBeta = {"beta", ParamType::real, "0.001", "[0, 1e30]", "added to the product"};
constexpr ParamSpec kTable[] = {kInitialOption, kDecaySteps, kPeriods, kAlpha, kBeta};
constexpr ParamSpec kNoisyTable[] = {
    kInitialOption,
    kDecaySteps,
    {"initial_variance", ParamType::real, "1", "[0, 1e6]", "variance of the noise at time 0"},
    {"variance_decay", ParamType::real, "0.55", "[0, 1e6]", "the variance is divided by (1 + time) ^ this"},
    kPeriods,
    kAlpha,
    kBeta};

}  // namespace

extern const ScheduleEntry kLinearCosineDecaySchedule = {
    "linear_cosine_decay",
    "initial * ((alpha + 1 - x) * (1 + cos(2 pi num_periods x)) / 2 + beta), where x = time / decay_steps",
    kTable, make_formula<LinearCosineDecay>};
extern const ScheduleEntry kNoisyLinearCosineDecaySchedule = {
    "noisy_linear_cosine_decay", "linear_cosine_decay with normal noise added to 1 - x; at least 0",
    kNoisyTable, make_formula<NoisyLinearCosineDecay>};

}  // namespace lockstep
