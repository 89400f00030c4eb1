// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A lock that allows one run at a time in a run directory. The chief holds it for the duration of the run.
// The operating system releases it when the process ends, in whatever way; the file remains.
#pragma once

#include <memory>
#include <string>

namespace lockstep {

class RunLock {
 public:
  /// Locks `<run_dir>/.lock` (the folder must exist) and writes process, host and time to it. Throws
  /// Error(config) that names the holder and gives advice if another process holds it, and if `.lock` is a
  /// symbolic link. On a file system without locks, only logs a warning.
  explicit RunLock(const std::string& run_dir);
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
