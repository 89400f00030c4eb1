// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of the rules that update each element alone, by an element function of kernels/rules. The
// class of a rule, with its options, is a template in the file of its element function, and is made by
// element_rules.cpp with this base. It works on the CPU and on GPUs, for dense gradients and for rows.
#pragma once

#include <fmt/format.h>

#include "core/range.h"
#include "kernels/update.h"
#include "optim/mean_decay.h"
#include "optim/optimizer.h"

namespace lockstep {

// Options that several rules have.
inline constexpr std::string_view kRateHelp = "a number, or a schedule with its options";
inline constexpr ParamSpec kRateOption = {"learning_rate", ParamType::node, kRequired, kRateRange, kRateHelp};
inline constexpr ParamSpec kLazyOption = {
    "lazy",
    ParamType::boolean,
    "false",
    {},
    "rows of tables (embeddings) that a step does not touch stay as they are, slots too"};
inline constexpr OptionRange kDecayRange = between(0, 1e6).or_schedule();
inline constexpr ParamSpec kWeightDecayOption = {"weight_decay", ParamType::node, "0", kDecayRange,
                                                 "times the variable, is added to its gradient"};
inline constexpr ParamSpec kDecoupledOption = {
    "decoupled_weight_decay",
    ParamType::boolean,
    "false",
    {},
    "variables are multiplied by 1 - learning rate * weight_decay instead (Loshchilov and Hutter 2019)"};
constexpr ParamSpec rate_option(std::string_view fallback) {
  return {"learning_rate", ParamType::node, fallback, kRateRange, kRateHelp};
}

/// How a rule uses its option weight_decay.
enum class WeightDecay { none, coupled, decoupled };
/// The kind that the option decoupled_weight_decay chooses.
inline WeightDecay weight_decay(const Params& p) {
  return p.boolean("decoupled_weight_decay") ? WeightDecay::decoupled : WeightDecay::coupled;
}

class ElementRule : public Optimizer {
 public:
  // What the templates of kernels/rules call by these names, because they know nothing of this room.
  using Params = lockstep::Params;
  using Option = ParamSpec;
  using Number = ScheduledNumber;
  using Mean = MeanDecay;
  using Text = std::string;
  using WeightDecay = lockstep::WeightDecay;
  using enum ParamType;
  static constexpr OptionRange kShareRange = lockstep::kShareRange, kDecayRange = lockstep::kDecayRange;
  static constexpr ParamSpec kRateOption = lockstep::kRateOption, kLazyOption = lockstep::kLazyOption,
                             kWeightDecayOption = lockstep::kWeightDecayOption,
                             kDecoupledOption = lockstep::kDecoupledOption;
  static constexpr ParamSpec rate_option(std::string_view fallback) {
    return lockstep::rate_option(fallback);
  }
  static constexpr OptionRange above(Limit limit) { return lockstep::above(limit); }
  static constexpr OptionRange at_least(Limit least) { return lockstep::at_least(least); }
  static constexpr OptionRange between(Limit least, Limit most) { return lockstep::between(least, most); }
  static WeightDecay weight_decay(const Params& p) { return lockstep::weight_decay(p); }
  template <typename... Arguments>
  static std::string format(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    return fmt::format(text, std::forward<Arguments>(arguments)...);
  }

  struct Slot {
    std::string_view name;
    float initial = 0;
  };
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
  ElementRule(const Params& options, std::initializer_list<Slot> slots, WeightDecay decay = WeightDecay::none,
              bool lazy = false);

  // For the constructor of a rule: the option `name`, a number or a schedule, with kShareRange in the table.
  /// What is kept of a moving mean.
  MeanDecay mean(const Params& options, std::string_view name) {
    return {scheduled(options, name, kShareRange), options, name, BiasCorrection::none};
  }
  /// What is kept of a moving mean whose bias is corrected (MeanDecay::product()).
  MeanDecay corrected_mean(const Params& options, std::string_view name) {
    return {scheduled(options, name, kShareRange), options, name, BiasCorrection::by_product};
  }
  const ScheduledNumber& share(const Params& options, std::string_view name) {
    return scheduled(options, name, kShareRange);
  }
  /// Whether it is the plain number 0.
  static bool is_zero(const Params& options, std::string_view name);

  /// The element function with the numbers of a step (rule_step() of kernels/rules.h), computed in double and
  /// rounded once. `rate` is the learning rate.
  virtual RuleStep at(std::int64_t step, double rate) = 0;
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
  RuleStep now_;
};

/// The option `name`, below 1 also when rounded to float32. Throws Error(config).
float share_below_one(const Params& options, std::string_view name);

}  // namespace lockstep
