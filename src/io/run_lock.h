// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A lock that allows one run at a time in a run directory. The chief holds it for the duration of the run.
// The operating system releases it when the process ends, in whatever way; the file remains.
#pragma once

#include <memory>
#include <string>

namespace lockstep {

/// How long a new run waits for the last one to end. A launcher may return a moment before the processes that
/// it killed are gone: the operating system still takes their memory apart.
inline constexpr double kLockSeconds = 10;

class RunLock {
 public:
  /// Locks `<run_dir>/.lock` (the folder must exist) and writes process, host and time to it. If another
  /// process holds it, waits for `patience_seconds` at most, or until a signal asks for a stop; says so after
  /// a second. Throws Error(config) that names the holder and gives advice if it is still held then, and at
  /// once if `.lock` is a symbolic link. On a file system without locks, only logs a warning.
  explicit RunLock(const std::string& run_dir, double patience_seconds = kLockSeconds);
  ~RunLock();
  /// Why the lock no longer keeps others out: it, or the run directory, has been removed, renamed or
  /// replaced. Empty: it does, or the file system gives no answer. Any thread.
  std::string lost() const;
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
