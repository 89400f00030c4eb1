// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Ends the run, on all ranks, when its directory or its lock is taken away: removed, renamed or replaced. A
// thread of the chief looks every second. What it finds is an interruption, so that also an evaluation is
// broken off, and an error, which travels with the exchange of the step: exit code 1, nothing is saved.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "core/coordinator.h"
#include "io/run_lock.h"
#include "session/hook.h"

namespace lockstep {

class RunDirectoryHook : public Hook {
 public:
  static constexpr double kLookSeconds = 1;
  /// `lock` belongs to the chief and outlives the hook; null on other ranks.
  explicit RunDirectoryHook(const RunLock* lock)
      : Hook("run_directory", HookScope::chief_only), lock_(lock) {}
  void begin(HookContext& context) override;
  /// Called before the last checkpoint.
  void end(HookContext& context) override;

 private:
  void look();
  std::string lost() const;
  [[noreturn]] void fail(HookContext& context, const std::string& why) const;

  const RunLock* lock_;
  std::atomic<bool> is_lost_{false};  // one load per step
  mutable std::mutex mutex_;
  std::string seen_, lost_;  // what the last look found, and what two looks in a row found
  bool told_ = false;
  Coordinator coordinator_;  // last: its thread ends before what it uses
};

}  // namespace lockstep
