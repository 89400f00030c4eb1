// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An optimizer whose variables are in groups (optimizer.groups): the section's rule, and one more per group.
// Each trainable variable has one rule. The rules share the slots: slot i of the flat range is slot i of each
// variable's own rule, so that there are as many as the rule with the most of them has.
#pragma once

#include "core/range.h"
#include "optim/variable_groups.h"

namespace lockstep {

class GroupedOptimizer final : public Optimizer {
 public:
  /// `first`: the section's rule.
  static std::unique_ptr<Optimizer> make(std::unique_ptr<Optimizer> first,
                                         std::span<const VariableGroup> groups);

  /// The rule of each group whose learning rate is not the section's and follows no schedule of its own
  /// (those are among all_numbers()): "group2/learning_rate".
  struct GroupRate {
    std::string name;
    const Optimizer* rule;
  };
  std::vector<GroupRate> group_rates() const;

  const char* kind() const override { return first().kind(); }
  std::string subject() const override {
    return first().updates_parts() && !first().measures() ? "a group's rule"
                                                          : fmt::format("the optimizer {}", kind());
  }
  std::string formula() const override { return first().formula(); }
  std::vector<Described> describe_all(const VariableStore& variables) const override;
  /// The names of the rule with the most slots.
  std::span<const std::string_view> slot_names() const override;
  std::string_view slot_name(std::size_t slot, const Variable& variable) const override;
  std::string meaning_of_slots(const Variable& variable) const override {
    return rule_of(variable).meaning_of_slots(variable);
  }
  /// One that is not zero, if there is one.
  float initial_value(std::size_t slot) const override;
  /// join() asks each rule.
  bool updates_on_devices() const override { return true; }
  bool updates_parts() const override;
  std::vector<ScheduledNumber*> all_numbers() override;
  const Optimizer& rule_of(const Variable& variable) const override { return rule_named(variable.name); }
  Optimizer& rule_of(const Variable& variable) override { return rule_named(variable.name); }
  void reset_updates() override;

  bool measures() const override;
  void measure(const UpdateContext& context, const float* gradients) override;
  void share_measures(const GradientParts& parts) override;
  std::vector<MatrixWork*> all_matrix_work(const UpdateContext& context) override;
  bool takes_rows(std::string_view variable) const override;
  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range) const override;
  void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                   const Variable& table, const SparseRows& gradient, Range rows) const override;

 private:
  /// The flat range from the end of the segment before to `last`.
  struct Segment {
    std::int64_t last;
    const Optimizer* rule;
  };
  GroupedOptimizer(std::vector<std::unique_ptr<Optimizer>> rules, std::vector<VariableGroup> groups);
  void set_variables(Device& device, const VariableStore& variables,
                     std::span<const VariableId> own) override;
  void fill_with_initial(std::size_t slot, std::span<float> values) const override;
  void prepare(std::int64_t step) override;
  const Optimizer& first() const { return *rules_.front(); }
  /// The rule of a variable that is not frozen.
  Optimizer& rule_named(std::string_view variable) const;
  const Segment& segment_at(std::int64_t element) const;

  std::vector<VariableGroup> groups_;
  std::vector<std::unique_ptr<Optimizer>>
      rules_;                      ///< the section's; then one per group, null if it is frozen
  std::vector<Segment> segments_;  ///< ascending; neighbours have different rules
};

}  // namespace lockstep
