// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of the rules that update each element alone, by an element function of kernels/rules. Each
// has a file in optim/rules. They work on the CPU and on GPUs, for dense gradients and for rows.
#pragma once

#include <fmt/format.h>

#include "core/range.h"
#include "kernels/update.h"
#include "optim/update_rule.h"

namespace lockstep {

inline constexpr std::string_view kRateHelp = "a number, or a schedule with its options";
inline constexpr OptionRange kDecayRange = between(0, 1e6).or_schedule();

/// How a rule uses its option weight_decay.
enum class WeightDecay { none, coupled, decoupled };

/// The options that several rules have.
struct RuleOptions {
  ScheduledNumber learning_rate, weight_decay;
  bool decoupled_weight_decay = false, lazy = false;

  /// The kind that decoupled_weight_decay chooses.
  WeightDecay chosen_decay() const {
    return decoupled_weight_decay ? WeightDecay::decoupled : WeightDecay::coupled;
  }
};

class ElementRule : public UpdateRule {
 public:
  std::span<const std::string_view> slot_names() const final { return names_; }
  float initial_value(std::size_t slot) const final { return initial_[slot]; }
  std::string formula() const final;
  bool updates_on_devices() const final { return true; }
  bool updates_parts() const final { return !measures(); }
  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range) const final;
  void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                   const Variable& table, const SparseRows& gradient, Range rows) const final;

 protected:
  struct Slot {
    std::string_view name;  ///< empty: a slot that the options leave out
    float initial = 0;
  };
  ElementRule(RuleOptions&& options, std::initializer_list<Slot> slots,
              WeightDecay decay = WeightDecay::none);

  /// The element function with the numbers of a step (rule_step() of kernels/rules.h), computed in double and
  /// rounded once, for variables with the updates `of`: t is of.updates. Schedules depend on the step. `rate`
  /// is the learning rate. Called once for each class in a step.
  virtual RuleStep at(std::int64_t step, double rate, const UpdateClass& of) = 0;
  /// The formula with its numbers, without the weight decay.
  virtual std::string rule_text() const = 0;
  /// False: a gradient of zero changes neither the variable nor a slot (without weight decay).
  virtual bool zero_gradient_moves() const { return true; }

 private:
  void prepare(std::int64_t step) final;
  RuleSlots slots_from(std::int64_t first) const;

  std::vector<std::string_view> names_;
  std::vector<float> initial_;
  WeightDecay decay_;
  const ScheduledNumber* factor_ = nullptr;  ///< null without decay_
  std::vector<RuleStep> now_;                ///< of each class of variables
};

/// For option_as() of a float: a number that is below 1 also when it is rounded. Throws Error(config).
float share_below_one(const Params& options, const ParamSpec& option);

}  // namespace lockstep
