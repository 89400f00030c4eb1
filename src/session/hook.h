// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hooks: what happens in addition to the training step. A session (monitored_session.h) calls all six methods
// of its hooks in the order in which the hooks were added:
//
//   begin                 once, before anything is restored: declare rank values and state here
//   after_create_session  the variables have their values; called again after each recovery
//   before_run            before each step
//   before_update         the step's numbers are known on all ranks; the variables are not updated yet
//   after_run             after each step
//   end                   once, after a clean stop; not after an error
//
// Before any of them, `lockstep train` and `lockstep check` call check(), so that an option that does not fit
// the run is found before the first step.
//
// A hook is called on all ranks, or on the chief only.
//
// Errors. What a hook throws in before_run, before_update or after_run on any rank travels with the exchange
// of the step. It ends the run on all ranks, with the hook's name. The other hooks of that step are still
// called. A hook that makes collective calls returns true from communicates(). Its errors end the run at
// once.
#pragma once

#include <string>
#include <utility>

#include "train/step_result.h"

namespace lockstep {

class HookContext;
struct RunNames;

enum class HookScope { all_ranks, chief_only };
/// What happens to the gradients of a step. `skip`: the variables keep their values, and the step counts.
/// `rollback`: the run goes back to the last checkpoint, and on after the samples of this step.
enum class Verdict { update, skip, rollback };

class Hook {
 public:
  virtual ~Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  /// Unique in a session. Messages show it, and checkpoints keep the hook's state under it.
  const std::string& name() const { return name_; }
  /// Of a hook that is not in a session yet: a configuration may list several of a kind.
  void set_name(std::string name) { name_ = std::move(name); }
  HookScope scope() const { return scope_; }
  /// True if its methods make collective calls. All ranks then make them in the same steps.
  virtual bool communicates() const { return false; }

  /// Throws Error(config) if the run does not have what an option names. Decides alike on all ranks.
  virtual void check(const RunNames&) const {}

  virtual void begin(HookContext&) {}
  virtual void after_create_session(HookContext&) {}
  virtual void before_run(HookContext&) {}
  /// Must decide alike on all ranks; `result` is the same on all. If hooks
  /// differ, the later word in Verdict counts.
  virtual Verdict before_update(HookContext&, const StepResult&) { return Verdict::update; }
  /// True: before_update may say skip or rollback, or uses gradients or variables. Then no variable changes
  /// before it is called, whatever optimizer.gating says. Asked once, after begin; the same on all ranks.
  virtual bool decides_update() const { return false; }
  virtual void after_run(HookContext&, const StepResult&) {}
  virtual void end(HookContext&) {}

 protected:
  explicit Hook(std::string name, HookScope scope = HookScope::all_ranks)
      : name_(std::move(name)), scope_(scope) {}

 private:
  std::string name_;
  HookScope scope_;
};

}  // namespace lockstep
