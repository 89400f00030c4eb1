// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The optimizer of a run: its rules (update_rule.h), their slots, and how often each variable was updated.
// Most runs have one rule; with optimizer.groups there is the section's, and one more per group that is not
// frozen. Each trainable variable has one rule. The rules share the slots: slot i of the flat range is slot i
// of each variable's own rule, so that there are as many as the rule with the most of them has.
//
// The same on all ranks, but for the parts of slots that a rank holds.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optim/optimizer_slots.h"
#include "optim/update_counts.h"

namespace lockstep {

class MatrixWork;
class ScheduledNumber;
class UpdateRule;
struct GradientParts;
struct KernelTable;
struct Lane;
struct SparseRows;
struct UpdateContext;
struct VariableGroup;

class Optimizer {
 public:
  /// `rule`: of all variables but those of `groups`; null: there are none.
  explicit Optimizer(std::unique_ptr<UpdateRule> rule,
                     std::shared_ptr<const std::vector<VariableGroup>> groups = {});
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Its rules.

  /// The one of the section, which most variables have.
  const UpdateRule& first() const { return *members_.front().rule; }
  const char* kind() const;
  double learning_rate(std::int64_t step) const;
  /// What needs whole variables, in messages about updates_parts() and measures().
  std::string subject() const;
  /// The line of a rule, and the names of its variables. Without groups the only list is empty: all.
  struct Described {
    std::string rule;
    std::vector<std::string> variables;
  };
  std::vector<Described> describe(const VariableStore& variables) const;
  /// The numbers that follow no other one, also those of groups; the learning rate first.
  std::vector<ScheduledNumber*> numbers();
  /// The rule of each group whose learning rate is not the section's and follows no schedule of its own
  /// (those are among numbers()): "group2/learning_rate".
  struct GroupRate {
    std::string name;
    const UpdateRule* rule;
  };
  std::vector<GroupRate> group_rates() const;
  /// Whether all rules, or any of them, are so (UpdateRule).
  bool updates_parts() const;
  bool lazy() const;
  bool measures() const;
  bool takes_rows(std::string_view variable) const;

  // Its slots.

  /// Once: allocates the slots, filled with their initial values. `held`: the parts of the flat range whose
  /// slots this rank holds, ascending; empty: all of it. update() then gets ranges inside one part. Throws
  /// Error(config) if a rule does not work on the device, or not on parts.
  void create_slots(Device& device, const VariableStore& variables, std::vector<Range> held = {});
  OptimizerSlots& slots() { return slots_; }
  const OptimizerSlots& slots() const { return slots_; }
  /// The names of the rule with the most slots.
  std::span<const std::string_view> slot_names() const;
  /// The slot's name for this variable; empty: the variable's rule has no such slot.
  std::string_view slot_name(std::size_t slot, const Variable& variable) const;
  /// UpdateRule::meaning_of_slots() of the variable's rule.
  std::string meaning_of_slots(const Variable& variable) const;
  /// Sets the slots to their initial values, and the updates of all variables to 0: the run is at step 0.
  /// What MatrixWork keeps stays (MatrixWork::reset()).
  void reset_slots();
  /// The same for some variables, with what MatrixWork keeps of them: their next update is their first one,
  /// at any step of the run. Those that are not trainable have no state. For all ranks alike, between two
  /// steps.
  void begin_anew(const VariableStore& variables, std::span<const VariableId> ids);

  // How often each trainable variable was updated (update_counts.h).

  std::int64_t updates(const Variable& variable) const {
    return member_of(variable).counts.of(variable).updates;
  }
  /// What a checkpoint keeps of the updates: their number, then the rule's running numbers, float64. None if
  /// restore_updates() finds the same without it: each step of the run was an update, and nothing else
  /// matters.
  std::optional<Tensor> kept_updates(const Variable& variable) const;
  /// Elements of kept_updates().
  std::size_t num_kept_updates(const Variable& variable) const {
    return 1 + member_of(variable).counts.initial().numbers.size();
  }
  /// The updates of a variable of a run at a step. `kept`: as of kept_updates(); or their number alone, and
  /// the running numbers are computed as of the last so many steps.
  struct RestoredUpdates {
    const Variable* variable;
    std::span<const double> kept;
  };
  void restore_updates(std::int64_t step, std::span<const RestoredUpdates> all);

  // Its work, after create_slots(): UpdateRule says what each call does.

  void share_measures(const GradientParts& parts);
  /// Called once: the work of each rule that has matrices.
  std::vector<MatrixWork*> matrix_work(const UpdateContext& context);
  /// One thread, once before the updates of a step, which count as one update of each variable. `step` is the
  /// global step before the update: 0 at first. Ranks without variables to update call it, too.
  void begin_step(std::int64_t step);
  /// In the place of begin_step() and the updates: the step leaves the variables as they are.
  void leave_out_step(std::int64_t step) { steps_ = step + 1; }
  void measure(const UpdateContext& context, const float* gradients);
  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range) const;
  void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                   const Variable& table, const SparseRows& gradient, Range rows) const;

 private:
  struct Member {
    std::unique_ptr<UpdateRule> rule;
    UpdateCounts counts;  ///< of its variables
  };
  /// The part of the flat range from the end of the segment before to `last`.
  struct Segment {
    std::int64_t last;
    const UpdateRule* rule;
  };
  /// Of the group of a variable, or of those in no group; null: they are frozen.
  Member* member_named(std::string_view variable) const;
  /// Of a variable that is not frozen.
  Member& member_of(const Variable& variable) const;
  void reset_updates();
  std::vector<Segment>::const_iterator segment_at(std::int64_t element) const;

  std::shared_ptr<const std::vector<VariableGroup>> groups_;  ///< null: none
  std::deque<Member> members_;                                ///< the section's, then one per group
  std::vector<Member*> of_group_;  ///< of no group, then of each group; null: frozen
  OptimizerSlots slots_;
  std::vector<Segment> segments_;  ///< ascending; neighbours have different rules
  std::int64_t steps_ = 0;         ///< done in the run
};

}  // namespace lockstep
