// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// reduce_on_plateau: a value that falls when a metric of evaluations stops improving, by the rules of
// PyTorch's ReduceLROnPlateau. Its state is kept in checkpoints.
#include <algorithm>

#include "optim/schedules/family.h"

namespace lockstep {

namespace {

class ReduceOnPlateau final : public Schedule, public MetricFollower {
 public:
  explicit ReduceOnPlateau(const Params& p)
      : metric_(p.string("metric")),
        initial_(p.real("initial")),
        rises_(p.string("mode") == "max"),
        relative_(p.string("threshold_mode") == "relative"),
        factor_(p.real("factor")),
        threshold_(p.real("threshold")),
        last_(p.real("last")),
        patience_(static_cast<double>(p.integer("patience"))),
        cooldown_(static_cast<double>(p.integer("cooldown"))) {
    if (last_ > initial_)
      throw p.error("last", fmt::format("it is above initial, {}", initial_),
                    "The value falls from initial to last.");
  }
  double at(double) const override { return std::max(initial_ * state_[kFactor], last_); }
  MetricFollower* follower() override { return this; }

  const std::string& metric() const override { return metric_; }
  std::span<double> state() override { return state_; }
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
    if (state_[kBad] <= patience_) return std::nullopt;
    state_[kCooldown] = cooldown_;
    state_[kBad] = 0;
    const double before = at(0);
    if (before == last_) return std::nullopt;
    state_[kFactor] *= factor_;
    return fmt::format("falls from {} to {}: {} has not {} for {} evaluations; the best was {}", before,
                       at(0), metric_, rises_ ? "increased" : "decreased", patience_ + 1, state_[kBest]);
  }

 private:
  /// On-disk order: do not change.
  enum : std::size_t { kFactor, kBest, kHasBest, kBad, kCooldown, kNumbers };

  bool is_better(double value) const {  // NaN is not
    const double best = state_[kBest];
    if (state_[kHasBest] == 0) return value == value;
    if (rises_) return value > (relative_ ? best * (1 + threshold_) : best + threshold_);
    return value < (relative_ ? best * (1 - threshold_) : best - threshold_);
  }

  std::string metric_;
  double initial_;
  bool rises_, relative_;
  double factor_, threshold_, last_, patience_, cooldown_;
  double state_[kNumbers] = {1};  ///< kFactor times initial is the value
};

constexpr ParamSpec kTable[] = {
    kInitialOption,
    {"metric", ParamType::string, "loss", "",
     "a result of evaluations: loss, accuracy, or a metric of eval.metrics; eval/loss means the same"},
    {"mode", ParamType::string, "min", "min|max", "max: larger is better"},
    {"factor", ParamType::real, "0.1", "(0, 1)", "what the value is multiplied by"},
    {"patience", ParamType::integer, "10", "[0, 1e12] evaluations",
     "so many may pass without an improvement; the next one lowers the value"},
    {"threshold", ParamType::real, "1e-4", "[0, 1e30]", "smallest improvement"},
    {"threshold_mode", ParamType::string, "relative", "relative|absolute",
     "relative: a share of the best value so far"},
    {"cooldown", ParamType::integer, "0", "[0, 1e12] evaluations", "so many do not count after a fall"},
    {"last", ParamType::real, "0", "[0, 1e30]", "smallest value"},
};

}  // namespace

extern const ScheduleEntry kReduceOnPlateauSchedule = {"reduce_on_plateau",
                                                       "falls when a metric of evaluations stops improving",
                                                       kTable, make_formula<ReduceOnPlateau>, true};

}  // namespace lockstep
