// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hooks: what happens beside the training step. A session (monitored_session.h) calls all six methods of its
// hooks in the order in which the hooks were added:
//
//   begin                 once, before anything is restored: declare rank values and state here
//   after_create_session  variables have their values; again after each recovery, while begin is not
//   before_run            before each step
//   before_update         the step's numbers are known on all ranks, the variables are not moved yet
//   after_run             after each step
//   end                   once, after a clean stop; not after an error
//
// A hook is called on all ranks, or on the chief only. What it throws in before_run, before_update or
// after_run on any rank travels with the step's one exchange and ends the run on all ranks, with the hook's
// name; the other hooks of that step still run. A hook whose calls communicate says so (communicates()); its
// own errors then end the run at once.
#pragma once

#include <string>

#include "train/trainer.h"

namespace lockstep {

class HookContext;

enum class HookScope { all_ranks, chief_only };
/// What becomes of a step's gradients. `skip`: the variables stay, the step counts.
enum class Verdict { update, skip };

class Hook {
 public:
  virtual ~Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  /// For messages, and for the hook's state in checkpoints: unique in a session.
  const std::string& name() const { return name_; }
  HookScope scope() const { return scope_; }
  /// True if its methods make collective calls: then they run on all ranks in every step where one does.
  virtual bool communicates() const { return false; }

  virtual void begin(HookContext&) {}
  virtual void after_create_session(HookContext&) {}
  virtual void before_run(HookContext&) {}
  /// Must decide alike on all ranks: `result` is the same on all. Skipped if any hook says so.
  virtual Verdict before_update(HookContext&, const StepResult&) { return Verdict::update; }
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
