// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A number of the run that is constant or follows a schedule: the learning rate, the momentum, the rate of a
// dropout. It adds to the schedule's formula what all schedules have in common: the unit of time, a warm-up,
// and scaling with the global batch.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "optim/schedule.h"
#include "optim/warmup.h"

namespace lockstep {

// The range of such an option takes a schedule.
inline constexpr OptionRange kRateRange = above(0).up_to(1e30).or_schedule();
inline constexpr OptionRange kShareRange = at_least(0).below(1).or_schedule();

class ScheduledNumber {
 public:
  // A member of a struct of options: option<&Options::rate>("rate", "0.1", kRateRange, "...").
  static constexpr ParamType kParamType = ParamType::node;
  friend void set_member(ScheduledNumber& member, const Params& params, const ParamSpec& option);
  /// No number yet.
  ScheduledNumber() = default;

  /// `node`: a number, or one schedule with its options. `option` is the number's name in messages and
  /// metrics. `range`, as in ParamSpec, must hold the number, or all values of the schedule; a schedule may
  /// also reach an excluded lower bound. `where` is the position of the option, and `subject` its owner in
  /// messages, such as "optimizer adam". Throws Error(config) with position.
  ScheduledNumber(const Node& node, std::string option, OptionRange range, std::string where = {},
                  std::string subject = "the schedule");

  /// Called before a run; needed where time is counted in epochs or samples, or the batch or the seed
  /// matters. May be called again. Throws Error(config) with position if a value is out of range in one of
  /// the run's steps.
  void begin(const ScheduleRun& run);

  /// The value in the update after which the global step is `step` + 1; the first update has step 0.
  double at(std::int64_t step) const;

  /// From now on the value is `factor` times that of `other`, which outlives it and is begun.
  void follow(const ScheduledNumber& other, double factor) {
    followed_ = &other;
    followed_factor_ = factor;
  }
  bool follows() const { return followed_ != nullptr; }

  const std::string& option() const { return option_; }
  void set_option(std::string name) { option_ = std::move(name); }
  const std::string& where() const { return where_; }
  /// What is written, in one line.
  std::string written() const;
  /// As Params::error().
  Error error(const std::string& what_happened, std::string advice = {}) const;
  /// The name of the schedule; empty for a plain number.
  const std::string& schedule() const { return name_; }
  /// The number, or the option's name if it follows a schedule.
  std::string text() const { return name_.empty() ? fmt::format("{}", formula_->at(0)) : option_; }
  /// A plain 0.
  bool is_zero() const { return name_.empty() && formula_->at(0) == 0; }
  /// The follower of a metric; null: the value depends on the step alone.
  MetricFollower* follower() const { return followed_ == nullptr ? formula_->follower() : nullptr; }
  /// The first step after the warm-up; 0: there is none.
  std::int64_t warmup_steps() const { return warmup_steps_; }

 private:
  void settle_warmup();
  void require_range(std::int64_t step) const;

  const ScheduledNumber* followed_ = nullptr;  ///< null: it has a value of its own
  double followed_factor_ = 1;
  Node node_;
  std::string option_, where_, subject_, name_;
  OptionRange range_;
  std::unique_ptr<Schedule> formula_;
  TimeUnit unit_ = TimeUnit::steps;
  std::optional<WarmUp> warmup_;
  std::string_view scaling_ = "none";
  double base_batch_ = 1, factor_ = 1;
  ScheduleRun run_;
  std::int64_t warmup_steps_ = 0;
  double begin_time_ = 0;  ///< of the formula, where it begins after the warm-up
};

}  // namespace lockstep
