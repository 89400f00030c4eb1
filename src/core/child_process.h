// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs an action in a child process, so that a crash in a library ends the child only.
#pragma once

#include <optional>
#include <string>

#include "core/function_ref.h"

namespace lockstep {

/// What the child is busy with, for the parent's message: shared memory that outlives the child.
class ChildNote {
 public:
  ChildNote();
  ~ChildNote();
  ChildNote(const ChildNote&) = delete;
  ChildNote& operator=(const ChildNote&) = delete;
  void set(const std::string& text);
  std::string text() const;

 private:
  char* memory_;
};

struct ChildLimits {
  double cpu_seconds = 60;  ///< of computing: a slow file system does not count
  double seconds = 120;     ///< then the child is ended, and its outcome stays unknown
};

/// Forks, runs `action` in the child and waits for its end. Returns nothing if the child ended by itself,
/// also if the action threw: the caller is about to do the same in this process, and reports the exception.
/// Otherwise returns what happened: "crashes (SIGSEGV)", "is busy for more than 60 s". A stop signal
/// (run_signals.h) and limits.seconds end the child; then nothing is returned. The child writes nothing to
/// the terminal and no core file. Call it before MPI and CUDA start and while there are no other threads.
std::optional<std::string> run_in_child(FunctionRef<void()> action, const ChildLimits& limits = {});

}  // namespace lockstep
