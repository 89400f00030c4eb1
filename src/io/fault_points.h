// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: the fault points in the writing of a checkpoint (core/fault.h). In builds without
// LOCKSTEP_FAULTS these functions have no effect. Only writes under a FaultStep are affected: the state file
// and metrics.jsonl use the same functions but never fail.
//
//   ENOSPC, EIO          a write fails
//   short_write          a write writes half of its data and reports that
//   slow_write           a write takes three seconds
//   kill_in_write        SIGKILL after half of a write
//   EIO_fsync            fsync of the finished temporary file fails
//   kill_before_fsync, kill_before_rename, kill_after_rename
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>

#include "core/fault.h"

namespace lockstep {

#ifdef LOCKSTEP_FAULTS

inline void fault_point(std::string_view kind) {
  if (FaultStep::present()) fault_kill(kind);
}

inline ssize_t faulty_pwrite(int descriptor, const void* data, std::size_t bytes, off_t at) {
  if (FaultStep::present()) {
    for (const auto& [kind, code] : {std::pair{"ENOSPC", ENOSPC}, std::pair{"EIO", EIO}})
      if (fault_is(kind)) {
        errno = code;
        return -1;
      }
    if (fault_is("slow_write")) std::this_thread::sleep_for(std::chrono::seconds(3));
    if (bytes > 1 && fault_is("short_write")) bytes /= 2;
    if (bytes > 1 && fault_is("kill_in_write")) {
      (void)!::pwrite(descriptor, data, bytes / 2, at);
      ::raise(SIGKILL);
    }
  }
  return ::pwrite(descriptor, data, bytes, at);
}

inline int faulty_fsync(int descriptor) {
  if (FaultStep::present() && fault_is("EIO_fsync")) {
    errno = EIO;
    return -1;
  }
  return ::fsync(descriptor);
}

#else

inline void fault_point(std::string_view) {}
inline ssize_t faulty_pwrite(int descriptor, const void* data, std::size_t bytes, off_t at) {
  return ::pwrite(descriptor, data, bytes, at);
}
inline int faulty_fsync(int descriptor) { return ::fsync(descriptor); }

#endif

}  // namespace lockstep
