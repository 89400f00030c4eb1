// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One run at a time in a run directory. Held by the chief for the length of the run. The operating system
// releases it when the process ends, however it ends; the file stays.
#pragma once

#include <memory>
#include <string>

namespace lockstep {

class RunLock {
 public:
  /// Locks `<run_dir>/.lock` (the folder must exist) and writes process, host and time into it. If another
  /// process has it: Error(config) that names the holder and what to do. A file system that cannot lock gets
  /// a warning.
  explicit RunLock(const std::string& run_dir);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
