// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of the optimization rules: what a rule is, and one fused update of a flat range. The bits do
// not depend on how the range is cut, so threads may share the work. The optimizer (optimizer.h) has the
// rules of a run, one per group of variables, and owns what they keep: slots, and counts of updates.
//
// docs/optimizers.md has the rules and their sources, docs/adding_an_optimizer.md says how to add one. Each
// rule has a file in rules/. element_rule.h is the base of those that update each element alone.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/range.h"
#include "optim/mean_decay.h"
#include "optim/optimizer_slots.h"
#include "optim/scheduled_number.h"
#include "optim/update_counts.h"

namespace lockstep {

class MatrixWork;
struct GradientParts;
struct KernelTable;
struct Lane;
struct SparseRows;
struct UpdateContext;

class UpdateRule {
 public:
  /// `lazy`: see lazy().
  explicit UpdateRule(ScheduledNumber&& learning_rate, bool lazy = false);
  virtual ~UpdateRule() = default;
  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;

  // What it is.

  virtual const char* kind() const = 0;
  /// Names of the slots, as in checkpoints: slots/<name>/<variable>.
  virtual std::span<const std::string_view> slot_names() const { return {}; }
  virtual float initial_value(std::size_t /*slot*/) const { return 0; }
  /// What the slots of the variable are: those of another name mean something else.
  virtual std::string meaning_of_slots(const Variable& /*variable*/) const { return kind(); }
  /// The rule in words, with its numbers, where g is the gradient, w the variable and lr the rate.
  virtual std::string formula() const { return {}; }
  /// One line: the kind, the formula and the rate.
  std::string describe() const;
  /// True: update() works on a GPU's memory with the kernels it is given. False: on host memory only; other
  /// devices are refused.
  virtual bool updates_on_devices() const { return false; }
  /// True: update() gives an element the same bits whatever the range around it, so that ranks may share the
  /// update of a variable. False: a rule that needs whole variables.
  virtual bool updates_parts() const { return false; }
  /// True: a step leaves rows of a table that it does not touch, and their slots, unchanged. False: such rows
  /// are updated with a gradient of zero, as with a dense gradient.
  bool lazy() const { return lazy_; }
  /// False: update_rows() is not for this variable; its gradient is dense.
  virtual bool takes_rows(std::string_view /*variable*/) const { return true; }

  // Its numbers.

  double learning_rate(std::int64_t step) const { return learning_rate_.at(step); }
  /// The options that are numbers or schedules, the learning rate first.
  std::deque<ScheduledNumber>& numbers() { return numbers_; }
  const std::deque<ScheduledNumber>& numbers() const { return numbers_; }
  /// Takes the numbers of `other`, which has the same rule and outlives it: the learning rate times `factor`,
  /// and all others but `but`.
  void follow(const UpdateRule& other, double factor, std::string_view but);
  /// UpdateClass::numbers before the first update.
  const std::vector<double>& initial_numbers() const { return initial_numbers_; }
  /// False: no number of the rule depends on the updates.
  virtual bool counts_updates() const { return !corrected_.empty(); }
  /// True: the running numbers depend on the steps of the updates, and not on how many there were alone.
  bool depends_on_steps() const;
  /// Counts an update in step `step`: one more, and the running numbers.
  void count_update(std::int64_t step, UpdateClass& of) const;
  /// `count` updates in the last steps before `step`.
  UpdateClass updates_of_last(std::int64_t count, std::int64_t step) const;

  // Its work. The optimizer calls all of it, bind() first and once.

  /// `slots` and `counts` are the optimizer's, `own` the trainable variables that the rule updates, in the
  /// order of the flat range.
  void bind(const OptimizerSlots& slots, const UpdateCounts& counts, Device& device,
            const VariableStore& variables, std::span<const VariableId> own);
  /// Called once, where ranks hold parts: how they exchange what measure() finds.
  virtual void share_measures(const GradientParts& /*parts*/) {}
  /// Called once: the work on whole matrices between measure() and update(), which ranks share; null: none.
  /// The rule owns it.
  virtual MatrixWork* matrix_work(const UpdateContext& /*context*/) { return nullptr; }
  /// Sets what MatrixWork keeps of a variable to its initial values.
  virtual void reset_matrices(const Variable& /*variable*/) {}

  /// One thread, once before the updates of a step, which are counted. `step` is the global step before the
  /// update: 0 at first.
  void begin_step(std::int64_t step) {
    step_ = step;
    prepare(step);
  }
  /// True: measure() precedes the updates of a step.
  virtual bool measures() const { return false; }
  /// All threads, after begin_step(): what a rule needs to know of whole variables, such as norms.
  /// `gradients` are those of the flat range, clipped. No allocation.
  virtual void measure(const UpdateContext& /*context*/, const float* /*gradients*/) {}
  /// Applies `gradients`, one per element of a flat range of its variables, to the values of the range.
  /// Threads may update disjoint ranges concurrently. No allocation.
  virtual void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                      const float* gradients, Range range) const = 0;
  /// Updates the rows [first, last) of a table with a sparse gradient, which is on the device, its count
  /// too. Unless a rule has its own, it calls update() for each row with a gradient, and with zeros for the
  /// others if not lazy(); such rules work on the CPU only.
  virtual void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                           const Variable& table, const SparseRows& gradient, Range rows) const;

 protected:
  /// Takes the number or schedule of an option; for the constructor of a rule. The rule asks it for the value
  /// at each step; the reference stays valid.
  const ScheduledNumber& scheduled(ScheduledNumber&& number) {
    return numbers_.emplace_back(std::move(number));
  }
  /// What is kept of a moving mean.
  MeanDecay mean(DecayNumber&& number) { return MeanDecay(scheduled(std::move(number))); }
  /// What is kept of a moving mean whose bias is corrected (MeanDecay::product()).
  MeanDecay corrected_mean(CorrectedDecayNumber&& number) {
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
  /// As for bind(), before the first step.
  virtual void set_variables(Device& /*device*/, const VariableStore& /*variables*/,
                             std::span<const VariableId> /*own*/) {}
  /// What a step computes once, after the updates of all classes are counted.
  virtual void prepare(std::int64_t /*step*/) {}
  std::int64_t step() const { return step_; }
  const UpdateCounts& counts() const { return *counts_; }
  /// OptimizerSlots::values() and place().
  float* slot(std::size_t index) const { return slots_->values(index); }
  std::int64_t place_in_slot(std::int64_t element) const { return slots_->place(element); }

 private:
  std::deque<ScheduledNumber> numbers_;
  const ScheduledNumber& learning_rate_;
  std::string rate_text_;
  bool lazy_;
  std::vector<double> initial_numbers_;
  std::vector<MeanDecay> corrected_;
  const OptimizerSlots* slots_ = nullptr;
  const UpdateCounts* counts_ = nullptr;
  std::int64_t step_ = 0;
};

}  // namespace lockstep
