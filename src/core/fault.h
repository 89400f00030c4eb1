// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fault injection for tests. Only builds with the CMake option LOCKSTEP_FAULTS contain it; in all other
// builds these functions are empty and cost nothing.
//
//   LOCKSTEP_FAULT=step:rank:kind[,step:rank:kind]...     environment variable, read once
//
// Each fault happens once, on its rank, at its step or the first opportunity after it. Code that can inject a
// fault calls fault_is() at that place. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#ifdef LOCKSTEP_FAULTS
#include <string>
#include <vector>
#endif

namespace lockstep {

#ifdef LOCKSTEP_FAULTS

struct Fault {
  std::int64_t step = 0;
  int rank = 0;
  std::string kind;
};
/// Throws Error(usage) for text in any other form and for a kind that is not in the table of fault.cpp.
std::vector<Fault> parse_faults(std::string_view text);

/// Plans these faults in place of those of the environment; for a test that forks. One thread.
void plan_faults(std::string_view text);
/// Sets this process's rank (initially 0). Throws Error(usage) if LOCKSTEP_FAULT cannot be parsed.
void set_fault_rank(int rank);
/// Sets the global step of the run (initially 0).
void set_fault_step(std::int64_t step);
/// True if a fault of this kind is due now. Each fault is reported once.
bool fault_is(std::string_view kind);
/// True if LOCKSTEP_FAULT names any fault, on any rank.
bool faults_planned();
/// Sends SIGKILL to this process if a fault of this kind is due.
void fault_kill(std::string_view kind);

/// Overrides the run's step for the calling thread during its lifetime: a checkpoint is written while the run
/// is already at a later step.
class FaultStep {
 public:
  explicit FaultStep(std::int64_t step);
  ~FaultStep();
  FaultStep(const FaultStep&) = delete;
  FaultStep& operator=(const FaultStep&) = delete;
  /// True if the calling thread has an override.
  static bool present();

 private:
  std::int64_t previous_;
};

#else

inline void set_fault_rank(int) {}
inline void set_fault_step(std::int64_t) {}
inline bool fault_is(std::string_view) { return false; }
inline bool faults_planned() { return false; }
inline void fault_kill(std::string_view) {}
class FaultStep {
 public:
  explicit FaultStep(std::int64_t) {}
  ~FaultStep() {}  // not trivial: avoids warnings about unused variables
  FaultStep(const FaultStep&) = delete;
  FaultStep& operator=(const FaultStep&) = delete;
};

#endif

}  // namespace lockstep
