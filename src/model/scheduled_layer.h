// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer with options that may follow a schedule in training, such as the rate of a dropout. The layer keeps
// the schedule as it is written; whoever runs the steps reads it, and sets the value before each step
// (train/run_schedules.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/param_reader.h"
#include "config/params.h"

namespace lockstep {

/// The range of a share in a table of options; such an option is a ParamType::node.
inline constexpr OptionRange kScheduledShare = at_least(0).below(1).or_schedule();

/// A number of a layer, or a schedule that gives it.
class LayerNumber {
 public:
  // A member of a struct of options: option<&Options::rate>("rate", "0.5", kScheduledShare, "...").
  static constexpr ParamType kParamType = ParamType::node;
  friend void set_member(LayerNumber& member, const Params& params, const ParamSpec& option) {
    member = LayerNumber(params, option.name, option.range);
  }
  LayerNumber() = default;
  LayerNumber(const Params& p, std::string_view option, const OptionRange& range)
      : option_(option), range_(range), where_(p.where(option)), subject_(p.subject()) {
    const ParamSpec spec{option, ParamType::real, kRequired, range,
                         "a number, or a schedule with its options"};
    if (const auto number = plain_number(p.node(option), spec, subject_, where_))
      value_ = static_cast<float>(*number);
    else
      schedule_ = p.node(option);
  }
  /// The value; in a schedule, that of the present step.
  float value() const { return value_; }
  void set(double value) { value_ = static_cast<float>(value); }
  /// The schedule; a null node: the value does not change.
  const Node& schedule() const { return schedule_; }
  bool is_scheduled() const { return schedule_.kind != Node::Kind::null; }
  /// The value is 0 in all steps.
  bool is_zero() const { return value_ == 0.0F && !is_scheduled(); }

  const std::string& option() const { return option_; }
  const OptionRange& range() const { return range_; }
  const std::string& where() const { return where_; }
  const std::string& subject() const { return subject_; }

 private:
  std::string option_;
  OptionRange range_;
  std::string where_, subject_;
  Node schedule_;
  float value_ = 0;
};

/// A base of such layers in addition to Layer.
class ScheduledLayer {
 public:
  virtual ~ScheduledLayer() = default;
  /// The scheduled numbers of the layer. Between steps, their values may be changed.
  virtual std::vector<LayerNumber*> numbers() = 0;
};

}  // namespace lockstep
