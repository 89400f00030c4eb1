// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// reduce_on_plateau: a value that falls when a metric of evaluations stops improving, by the rules of
// PyTorch's ReduceLROnPlateau. Its state is kept in checkpoints.
#include <algorithm>

#include "model/direction.h"
#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class ReduceOnPlateau final : public Schedule, public MetricFollower, public MetricComparer {
 public:
  enum class ThresholdMode { relative, absolute };
  struct Options {
    double initial = 0;
    std::string metric;
    Direction mode = Direction::none;
    double factor = 0;
    std::int64_t patience = 0;
    double threshold = 0;
    ThresholdMode threshold_mode = ThresholdMode::relative;
    std::int64_t cooldown = 0;
    double last = 0;
  };
  ReduceOnPlateau(const Options& options, const Params& p)
      : o_(options), larger_(options.mode == Direction::max) {
    if (o_.last > o_.initial)
      throw p.error(option_name<&Options::last>(p), fmt::format("it is above initial, {}", o_.initial),
                    "The value falls from initial to last.");
  }
  double at(double) const override { return std::max(o_.initial * state_[kFactor], o_.last); }
  MetricFollower* follower() override { return this; }

  const std::string& metric() const override { return o_.metric; }
  Direction given_direction() const override { return o_.mode; }
  void set_direction(Direction direction) override { larger_ = direction == Direction::max; }
  std::span<double> state() override { return state_; }
  std::size_t lasting_state() const override { return kFactor + 1; }
  bool larger_is_better() const override { return larger_; }
  std::optional<std::string> observe(double value) override {
    if (is_better(value)) {
      state_[kBest] = value;
      state_[kHasBest] = 1;
      state_[kBad] = 0;
    } else {
      state_[kBad] += 1;
    }
    if (state_[kCooldown] > 0) {
      state_[kCooldown] -= 1;
      state_[kBad] = 0;
    }
    if (state_[kBad] <= static_cast<double>(o_.patience)) return std::nullopt;
    state_[kCooldown] = static_cast<double>(o_.cooldown);
    state_[kBad] = 0;
    const double before = at(0);
    if (before == o_.last) return std::nullopt;
    state_[kFactor] *= o_.factor;
    return fmt::format("falls from {} to {}: {} has not {} for {} evaluations; the best was {}", before,
                       at(0), o_.metric, larger_ ? "increased" : "decreased",
                       static_cast<double>(o_.patience) + 1, state_[kBest]);
  }

 private:
  /// On-disk order: do not change.
  enum : std::size_t { kFactor, kBest, kHasBest, kBad, kCooldown, kNumbers };

  bool is_better(double value) const {  // NaN is not
    const double best = state_[kBest];
    if (state_[kHasBest] == 0) return value == value;
    if (larger_)
      return value >
             (o_.threshold_mode == ThresholdMode::relative ? best * (1 + o_.threshold) : best + o_.threshold);
    return value <
           (o_.threshold_mode == ThresholdMode::relative ? best * (1 - o_.threshold) : best - o_.threshold);
  }

  Options o_;
  bool larger_;                   ///< is better
  double state_[kNumbers] = {1};  ///< kFactor times initial is the value
};

using Options = ReduceOnPlateau::Options;
Direction mode_of(const Params& p, const ParamSpec& option) {
  return p.has(option.name) ? direction_from(p.string(option.name)) : Direction::none;
}
constexpr ParamSpec kTable[] = {
    initial_option<&Options::initial>(),
    option<&Options::metric>(
        "metric", "loss", {},
        "a result of evaluations: loss, accuracy, or a metric of eval.metrics; eval/loss means the same"),
    option_as<mode_of, &Options::mode>(
        ParamType::string, "mode", "null", one_of("min|max").or_null(),
        "max: larger is better; null: as the metric says, min for losses and errors, max for accuracies"),
    option<&Options::factor>("factor", "0.1", above(0).below(1), "what the value is multiplied by"),
    option<&Options::patience>("patience", "10", between(0, 1e12, "evaluations"),
                               "so many may pass without an improvement; the next one lowers the value"),
    option<&Options::threshold>("threshold", "1e-4", between(0, 1e30), "smallest improvement"),
    option<&Options::threshold_mode>("threshold_mode", "relative", one_of("relative|absolute"),
                                     "relative: a share of the best value so far"),
    option<&Options::cooldown>("cooldown", "0", between(0, 1e12, "evaluations"),
                               "so many do not count after a fall"),
    option<&Options::last>("last", "0", between(0, 1e30), "smallest value"),
};

}  // namespace

extern const ScheduleEntry kReduceOnPlateauSchedule = {"reduce_on_plateau",
                                                       "falls when a metric of evaluations stops improving",
                                                       kTable, make_formula<ReduceOnPlateau>, true};

}  // namespace lockstep
