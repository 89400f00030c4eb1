// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/run_directory_hook.h"

#include <utility>

#include "core/timed_service.h"
#include "session/hook_context.h"

namespace lockstep {

void RunDirectoryHook::begin(HookContext& context) {
  if (lock_ == nullptr) return;
  loop(coordinator_, kLookSeconds, [this] { look(); }, {.name = "run directory"});
  context.interruptions().add([this, &context]() -> InterruptionRequest {
    if (!is_lost_) return {};
    if (!std::exchange(told_, true)) context.keep_errors(*this, [&] { fail(context, lost()); });
    return {Interruption::requeue, static_cast<int>(InterruptionReason::lost_directory)};
  });
}

void RunDirectoryHook::end(HookContext& context) {
  if (lock_ == nullptr) return;
  if (const std::string why = lock_->lost(); !why.empty()) fail(context, why);
}

/// Two looks in a row, because a network file system may lose sight of a file for a moment.
void RunDirectoryHook::look() {
  std::string now = lock_->lost();
  const std::lock_guard lock(mutex_);
  if (!now.empty() && !seen_.empty()) {
    lost_ = now;
    is_lost_ = true;
  }
  seen_ = std::move(now);
}

std::string RunDirectoryHook::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void RunDirectoryHook::fail(HookContext& context, const std::string& why) const {
  throw Error(ErrorKind::output, fmt::format("{}; the run ends at step {}", why, context.global_step()),
              context.run_dir(),
              "Nothing was saved since the last checkpoint. Put the directory back, or start the run again.");
}

}  // namespace lockstep
