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

struct LinearCosineOptions {
  double initial = 0, num_periods = 0, alpha = 0, beta = 0;
  std::optional<double> decay_steps;
};

class LinearCosineDecay final : public Schedule {
 public:
  using Options = LinearCosineOptions;
  explicit LinearCosineDecay(const Options& options) : o_(options), length_(options.decay_steps) {}
  void set_end(double time) override { length_.set_end(time); }
  double at(double time) const override { return value(counted(time), 0); }
  double counted(double time) const { return std::min(time, length_.time()); }
  /// At a counted time, with a number added to the linear part.
  double value(double time, double noise) const {
    const double length = length_.time(), linear = (length - time) / length + noise;
    const double fraction = 2 * o_.num_periods * (time / length);
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * fraction));
    return o_.initial * ((o_.alpha + linear) * cosine + o_.beta);
  }

 private:
  Options o_;
  DecayLength length_;
};

/// The noise is a function of the run's seed, the option's name and the time: the same on all ranks and after
/// a resume. A value that it makes negative becomes 0: an update must not climb.
class NoisyLinearCosineDecay final : public Schedule {
 public:
  struct Options {
    LinearCosineOptions mean;
    double initial_variance = 0, variance_decay = 0;
  };
  explicit NoisyLinearCosineDecay(const Options& options) : o_(options), mean_(options.mean) {}
  void begin(const ScheduleRun& run, std::string_view option) override {
    seed_ = run.seed;
    purpose_ = philox_purpose(fmt::format("schedule/{}", option));
  }
  void set_end(double time) override { mean_.set_end(time); }
  double at(double time) const override {
    const double counted = mean_.counted(time);
    const double deviation = std::sqrt(o_.initial_variance / std::pow(1 + counted, o_.variance_decay));
    const auto bits = std::bit_cast<std::uint64_t>(time);
    const PhiloxBlock words = philox_words(seed_, purpose_, static_cast<std::uint32_t>(bits),
                                           static_cast<std::uint32_t>(bits >> 32), 0);
    return std::max(0.0, mean_.value(counted, deviation * philox_normal(words[0], words[1])[0]));
  }

 private:
  Options o_;
  LinearCosineDecay mean_;
  std::uint64_t seed_ = 0;
  std::uint32_t purpose_ = philox_purpose("schedule");
};

// The options of the first formula in both tables; `kWhole...` leads to them.
using Linear = LinearCosineOptions;
template <auto... kWhole>
constexpr ParamSpec kDecaySteps = length_option<kWhole..., &Linear::decay_steps>(
    "decay_steps", "time at which the linear part is 0; null: the end of the run");
template <auto... kWhole>
constexpr ParamSpec kPeriods = option<kWhole..., &Linear::num_periods>("num_periods", "0.5",
                                                                       above(0).up_to(1e6),
                                                                       "periods of the cosine");
template <auto... kWhole>
constexpr ParamSpec kAlpha = option<kWhole..., &Linear::alpha>("alpha", "0", between(0, 1e30),
                                                               "added to the linear part");
template <auto... kWhole>
constexpr ParamSpec kBeta = option<kWhole..., &Linear::beta>("beta", "0.001", between(0, 1e30),
                                                             "added to the product");

constexpr ParamSpec kTable[] = {initial_option<&Linear::initial>(), kDecaySteps<>, kPeriods<>, kAlpha<>,
                                kBeta<>};
using Noisy = NoisyLinearCosineDecay::Options;
constexpr ParamSpec kNoisyTable[] = {
    initial_option<&Noisy::mean, &Linear::initial>(),
    kDecaySteps<&Noisy::mean>,
    option<&Noisy::initial_variance>("initial_variance", "1", between(0, 1e6),
                                     "variance of the noise at time 0"),
    option<&Noisy::variance_decay>("variance_decay", "0.55", between(0, 1e6),
                                   "the variance is divided by (1 + time) ^ this"),
    kPeriods<&Noisy::mean>,
    kAlpha<&Noisy::mean>,
    kBeta<&Noisy::mean>,
};

}  // namespace

extern const ScheduleEntry kLinearCosineDecaySchedule = {
    "linear_cosine_decay",
    "initial * ((alpha + 1 - x) * (1 + cos(2 pi num_periods x)) / 2 + beta), where x = time / decay_steps",
    kTable,
    make_formula<LinearCosineDecay>,
    false,
    "decay_steps"};
extern const ScheduleEntry kNoisyLinearCosineDecaySchedule = {
    "noisy_linear_cosine_decay",
    "linear_cosine_decay with normal noise added to 1 - x; at least 0",
    kNoisyTable,
    make_formula<NoisyLinearCosineDecay>,
    false,
    "decay_steps"};

}  // namespace lockstep
