// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of the optimization rules. An optimizer has slots, flat allocations with the layout of the
// trainable variables, and one fused update of a flat range. The bits do not depend on how the range is cut,
// so threads may share the work.
//
// docs/optimizers.md has the rules and their sources, docs/adding_an_optimizer.md says how to add one. Each
// rule has a file in rules/. element_rule.h is the base of those that update each element alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "config/params.h"
#include "config/table.h"
#include "core/buffer.h"
#include "core/range.h"
#include "kernels/kernel_table.h"
#include "model/variable_store.h"
#include "optim/matrix_work.h"
#include "optim/mean_decay.h"
#include "optim/scheduled_number.h"
#include "optim/update_context.h"
#include "optim/update_counts.h"

namespace lockstep {

class Optimizer {
 public:
  /// `lazy`: see lazy().
  explicit Optimizer(ScheduledNumber&& learning_rate, bool lazy = false);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  virtual const char* kind() const = 0;
  /// Names of the slots, as in checkpoints: slots/<name>/<variable>.
  virtual std::span<const std::string_view> slot_names() const { return {}; }
  virtual float initial_value(std::size_t slot) const;
  /// The slot's name for this variable; empty: the variable's rule has no such slot.
  virtual std::string_view slot_name(std::size_t slot, const Variable& /*variable*/) const {
    return slot_names()[slot];
  }
  /// What the slots of the variable are: those of another name mean something else.
  virtual std::string meaning_of_slots(const Variable& /*variable*/) const { return kind(); }
  /// What needs whole variables, in messages about updates_parts().
  virtual std::string subject() const { return fmt::format("the optimizer {}", kind()); }
  /// The rule in words, with its numbers, where g is the gradient, w the variable and lr the rate.
  virtual std::string formula() const { return {}; }
  /// One line: the kind, the formula and the rate.
  std::string describe() const;
  /// The line of a rule, and the names of its variables. Without groups the only list is empty: all.
  struct Described {
    std::string rule;
    std::vector<std::string> variables;
  };
  virtual std::vector<Described> describe_all(const VariableStore& /*variables*/) const {
    return {{describe(), {}}};
  }
  /// True: update() works on a GPU's memory with the kernels it is given. False: on host memory only, and
  /// create_slots() refuses other devices.
  virtual bool updates_on_devices() const { return false; }

  /// True: update() gives an element the same bits whatever the range around it, so that ranks may share the
  /// update of a variable. False: a rule that needs whole variables.
  virtual bool updates_parts() const { return false; }

  /// Allocates the slots, filled with their initial values. `held`: the parts of the flat range whose slots
  /// this rank holds, ascending; empty: all of it. update() then gets ranges inside one part. Throws
  /// Error(config) if the rule does not work on the device, or not on parts.
  void create_slots(Device& device, const VariableStore& variables, std::vector<Range> held = {});
  /// Sets the slots to their initial values, and the updates of all variables to 0: the run is at step 0.
  /// What MatrixWork keeps stays (MatrixWork::reset()).
  void reset_slots();
  /// The same for some variables, with what MatrixWork keeps of them: their next update is their first one,
  /// at any step of the run. Those that are not trainable have no state. For all ranks alike, between two
  /// steps.
  void begin_anew(const VariableStore& variables, std::span<const VariableId> ids);
  /// The whole slot on the device, flat like VariableStore::trainable_values(); where only parts are held,
  /// one after the other.
  float* slot(std::size_t index) const {
    return static_cast<float*>((whole_ != nullptr ? whole_ : this)->slots_[index].data());
  }
  /// Where the slot of flat element `first` is in slot(): that part is held here.
  std::int64_t place_in_slot(std::int64_t first) const {
    const Optimizer& whole = whole_ != nullptr ? *whole_ : *this;
    return whole.held_.empty() ? first : whole.place_in_parts(first);
  }
  /// The parts that are held; empty: all of the flat range.
  std::span<const Range> held() const { return held_; }
  std::size_t slot_bytes() const;
  /// Marks the host's copy, where there is one, as outdated: the slots changed on the device.
  void device_changed() { host_is_old_ = device_ != nullptr && !device_->is_host(); }
  /// The part of a slot that belongs to a variable, which must be held whole, in host memory, with the
  /// device's current values. to_device() copies changes back.
  Tensor slot_tensor(std::size_t index, const Variable& variable) const;
  void to_device();

  double learning_rate(std::int64_t step) const { return learning_rate_.at(step); }
  /// The options that are numbers or schedules, the learning rate first.
  std::deque<ScheduledNumber>& numbers() { return numbers_; }
  const std::deque<ScheduledNumber>& numbers() const { return numbers_; }
  /// The numbers that follow no other one, also those of groups; the learning rate first.
  virtual std::vector<ScheduledNumber*> all_numbers();

  /// True: a step leaves rows of a table that it does not touch, and their slots, unchanged. False: such rows
  /// are updated with a gradient of zero, as with a dense gradient.
  bool lazy() const { return lazy_; }

  /// Makes it the rule of some variables of a whole (grouped_optimizer.h), whose slots it uses. `own` as for
  /// set_variables(). Throws Error(config) if the rule does not work on the device.
  void join(const Optimizer& whole, Device& device, const VariableStore& variables,
            std::span<const VariableId> own);
  /// Takes the numbers of `other`, which has the same rule and outlives it: the learning rate times `factor`,
  /// and all others but `but`.
  void follow(const Optimizer& other, double factor, std::string_view but);

  /// One thread, once before the updates of a step, which count as one update of each variable. `step` is the
  /// global step before the update: 0 at first. Ranks without variables to update call it, too.
  void begin_step(std::int64_t step);
  /// In the place of begin_step() and the updates: the step leaves the variables as they are.
  void leave_out_step(std::int64_t step) { steps_ = step + 1; }

  // How often each trainable variable was updated (update_counts.h). The same on all ranks.

  /// The rule of a trainable variable: this one, or that of its group.
  virtual const Optimizer& rule_of(const Variable& /*variable*/) const { return *this; }
  virtual Optimizer& rule_of(const Variable& /*variable*/) { return *this; }
  /// No updates yet, at step 0 of the run.
  virtual void reset_updates();
  std::int64_t updates(const Variable& variable) const {
    return rule_of(variable).counts_.of(variable).updates;
  }
  /// False: no number of the rule depends on the updates.
  virtual bool counts_updates() const { return !corrected_.empty(); }
  /// What a checkpoint keeps of the updates: their number, then the rule's running numbers, float64. None if
  /// restore_updates() finds the same without it: each step of the run was an update, and nothing else
  /// matters.
  std::optional<Tensor> kept_updates(const Variable& variable) const;
  /// Elements of kept_updates().
  std::size_t num_kept_updates(const Variable& variable) const {
    return 1 + rule_of(variable).counts_.initial().numbers.size();
  }
  /// The updates of a variable of a run at a step. `kept`: as of kept_updates(); or their number alone, and
  /// the running numbers are computed as of the last so many steps.
  struct RestoredUpdates {
    const Variable* variable;
    std::span<const double> kept;
  };
  void restore_updates(std::int64_t step, std::span<const RestoredUpdates> all);

  /// Applies `gradients`, one per element of the flat range, to the values of the range. Threads may update
  /// disjoint ranges concurrently. No allocation.
  virtual void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                      const float* gradients, Range range) const = 0;
  /// True: measure() precedes the updates of a step.
  virtual bool measures() const { return false; }
  /// All threads, after begin_step(): what a rule needs to know of whole variables, such as norms.
  /// `gradients` are those of the flat range, clipped. No allocation.
  virtual void measure(const UpdateContext& /*context*/, const float* /*gradients*/) {}
  /// Called once, after create_slots(), where ranks hold parts: how they exchange what measure() finds.
  virtual void share_measures(const GradientParts& /*parts*/) {}
  /// Called once, after create_slots(): the work on whole matrices between measure() and update(), which
  /// ranks share; null: none. The optimizer owns it.
  virtual MatrixWork* matrix_work(const UpdateContext& /*context*/) { return nullptr; }
  /// The matrix work of all groups, in their order; called once in the place of matrix_work().
  virtual std::vector<MatrixWork*> all_matrix_work(const UpdateContext& context) {
    MatrixWork* const work = matrix_work(context);
    return work != nullptr ? std::vector{work} : std::vector<MatrixWork*>();
  }
  /// False: update_rows() is not for this variable; its gradient is dense.
  virtual bool takes_rows(std::string_view /*variable*/) const { return true; }
  /// Updates the rows [first, last) of a table with a sparse gradient, which is on the device, its count
  /// too. Unless a rule has its own, it calls update() for each row with a gradient, and with zeros for the
  /// others if not lazy(); such rules work on the CPU only.
  virtual void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                           const Variable& table, const SparseRows& gradient, Range rows) const;

 protected:
  /// An optimizer of several rules; `first`, which outlives it, is that of most variables.
  Optimizer(const Optimizer& first, bool lazy);
  /// `values`: those that are held, in the order of slot().
  virtual void fill_with_initial(std::size_t slot, std::span<float> values) const;
  /// Takes the number or schedule of an option; for the constructor of a rule. The rule asks it for the value
  /// at each step; the reference stays valid.
  const ScheduledNumber& scheduled(ScheduledNumber&& number) {
    return numbers_.emplace_back(std::move(number));
  }
  /// What is kept of a moving mean: a number or schedule of kShareRange.
  MeanDecay mean(ScheduledNumber&& number) { return MeanDecay(scheduled(std::move(number))); }
  /// What is kept of a moving mean whose bias is corrected (MeanDecay::product()).
  MeanDecay corrected_mean(ScheduledNumber&& number) {
    return corrected_.emplace_back(scheduled(std::move(number)), initial_numbers_);
  }
  /// Adds a number to UpdateClass::numbers, for the constructor of a rule; returns its place there.
  std::size_t running_number(double initial) {
    initial_numbers_.push_back(initial);
    return initial_numbers_.size() - 1;
  }
  /// Computes the running numbers of a class in an update in step `step`, which `of` counts already. Those of
  /// corrected_mean() are computed.
  virtual void count(std::int64_t /*step*/, UpdateClass& /*of*/) const {}
  const UpdateCounts& counts() const { return counts_; }
  /// The trainable variables that the rule updates, in the order of the flat range. Called once, before the
  /// first step.
  virtual void set_variables(Device& /*device*/, const VariableStore& /*variables*/,
                             std::span<const VariableId> /*own*/) {}
  /// False: the variable belongs to another rule of the whole.
  bool owns(const Variable& variable) const;
  /// Sets what MatrixWork keeps of a variable to its initial values.
  virtual void reset_matrices(const Variable& /*variable*/) {}
  /// What a step computes once, after the updates of all classes are counted.
  virtual void prepare(std::int64_t /*step*/) {}
  std::int64_t step() const { return step_; }

 private:
  std::int64_t place_in_parts(std::int64_t first) const;
  void require_device(const Device& device) const;
  void set_own(Device& device, const VariableStore& variables, std::span<const VariableId> own);
  void count_update(std::int64_t step, UpdateClass& of) const;
  UpdateClass updates_of_last(std::int64_t count, std::int64_t step) const;
  void fetch_slots() const;

  std::deque<ScheduledNumber> numbers_;
  const ScheduledNumber& learning_rate_;
  std::string rate_text_;
  bool lazy_;
  std::int64_t step_ = 0;
  std::int64_t steps_ = 0;  ///< done in the run
  std::vector<double> initial_numbers_;
  std::vector<MeanDecay> corrected_;
  UpdateCounts counts_;  ///< with groups: of no interest, rule_of() has them
  Device* device_ = nullptr;
  std::vector<Range> held_;           ///< empty: all
  std::vector<std::int64_t> places_;  ///< of each held part in the slots
  const Optimizer* whole_ = nullptr;  ///< has the slots; null: this one
  std::vector<std::int64_t> own_;     ///< offsets of the variables, ascending; with whole_ only
  std::vector<Buffer> slots_;
  std::vector<Buffer> mirrors_;  ///< pinned host copies; empty on the CPU
  mutable bool host_is_old_ = false;
};

struct OptimizerEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Optimizer> (*make)(const Params&);
};
/// A factory for OptimizerEntry::make: Rule is constructed from Rule::Options, whose members the table binds
/// (config/option.h), and from Params, too, if it refuses some of them.
template <typename Rule>
std::unique_ptr<Optimizer> make_rule(const Params& p) {
  using Options = typename Rule::Options;
  if constexpr (std::is_constructible_v<Rule, Options, const Params&>)
    return std::make_unique<Rule>(p.as<Options>(), p);
  else
    return std::make_unique<Rule>(p.as<Options>());
}
/// Lockstep's own rules, then those that add() added.
Table<OptimizerEntry>& optimizer_table();

/// The keys of the section `optimizer` that stand next to the name of the rule.
std::span<const ParamSpec> optimizer_section_table();
/// The section in two parts: `rule` is a name, or a map of one name to its options; `beside` a map of the
/// other keys, or null. A map that names no rule alone is `rule` whole.
struct OptimizerSection {
  Node rule, beside;
};
OptimizerSection split_optimizer_section(const Node& node);

struct VariableGroup;  // optim/variable_groups.h

/// When variables are updated, with the same bits: graph: when the step's gradients are all summed; op: the
/// variables of a layer when the sums of that layer are there, during the rest of the backward pass; none:
/// each when its own sum is there.
enum class Gating { graph, op, none };
const char* name_of(Gating gating);

/// The section `optimizer` of a configuration: a rule with its checked options, and the keys next to it.
struct OptimizerOptions {
  OptimizerEntry entry = {};
  Params options = {};
  Params section = {};  ///< checked against optimizer_section_table()
  /// The slots are distributed over the ranks, each of which updates the variables of its part.
  bool shard = false;
  Gating gating = Gating::graph;
  std::shared_ptr<const std::vector<VariableGroup>> groups = {};  ///< null: none
  /// A new optimizer without slots. Throws Error(config) with position for options that do not fit together.
  std::unique_ptr<Optimizer> make() const;
  /// Whether a group freezes the variable.
  std::function<bool(const std::string& variable)> frozen_variables() const;
  /// Throws Error(config) with position for a group that fits no variable of the model.
  void check(const VariableStore& variables) const;
};
/// `node`: a name, or a map of one name to its options, with optimizer_section_table()'s keys next to it.
/// Makes the optimizer once, so that all mistakes show. Throws Error(config) with position.
OptimizerOptions optimizer_options(const Node& node);

}  // namespace lockstep
