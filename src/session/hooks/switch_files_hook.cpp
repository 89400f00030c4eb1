// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/switch_files_hook.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/log.h"
#include "session/hook_context.h"

namespace lockstep {

namespace {

constexpr double kLookSeconds = 1;

/// Removes the file; true if there was one. A file that cannot be removed would act again in the next job.
bool take(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  log_warning("{} cannot be removed: {}", path, std::strerror(errno));
  return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace

void SwitchFilesHook::begin(HookContext& context) {
  context.interruptions().add([this, &context] { return look(context); });
}

InterruptionRequest SwitchFilesHook::look(HookContext& context) {
  if (looked_ && since_.seconds() < kLookSeconds) return {};
  looked_ = true;
  since_.restart();
  if (take(save_)) {
    context.reports().note("the run directory has a file SAVE");
    context.request_save();
  }
  if (!take(stop_)) return {};
  return {Interruption::user, static_cast<int>(InterruptionReason::stop_file)};
}

}  // namespace lockstep
