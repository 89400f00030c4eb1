// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The hooks of a session, and the rules for calling them: each on all ranks or on the chief only, in the
// order in which they were added, with the hook's name in every error.
#pragma once

#include <memory>
#include <vector>

#include "core/function_ref.h"
#include "session/hook.h"
#include "session/stop_control.h"

namespace lockstep {

class Communicator;
class DeferredCalls;

class HookList {
 public:
  using Call = FunctionRef<void(Hook&)>;

  /// References outlive it.
  HookList(Communicator& control, StopControl& stop, const DeferredCalls& deferred)
      : control_(control), stop_(stop), deferred_(deferred) {}

  /// Throws Error(config) if the name is taken.
  void add(std::unique_ptr<Hook> hook);

  /// The first hook that decides on updates; null: none.
  const Hook* deciding() const;
  /// Outside of a step. All ranks. An error on any rank is thrown on all of them after that hook, except for
  /// hooks that communicate: their errors are this rank's own.
  void call_agreed(const char* method, Call call);
  /// Calls the hooks in a step. Errors of hooks that do not communicate are kept for the next exchange, and
  /// the other hooks are still called. After a hook has deferred its call, no further one is called.
  void call_in_step(const char* method, Call call, std::size_t first = 0);
  /// The number of the hook that the deferred calls begin with; if there is none, the number of hooks.
  std::size_t first_deferred() const;

 private:
  bool calls(const Hook& hook) const;

  Communicator& control_;
  StopControl& stop_;
  const DeferredCalls& deferred_;
  std::vector<std::unique_ptr<Hook>> hooks_;
};

}  // namespace lockstep
