// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Faults on purpose, for tests. Only builds with the CMake option LOCKSTEP_FAULTS have them; in all others
// every function here is empty and costs nothing.
//
//   LOCKSTEP_FAULT=step:rank:kind[,step:rank:kind]...     in the environment, read once
//
// A fault is due on its rank from its step on, once. Who has something to break asks fault_is() at the place
// where it breaks. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#ifdef LOCKSTEP_FAULTS
#include <string>
#include <vector>
#endif

namespace lockstep {

#ifdef LOCKSTEP_FAULTS

inline constexpr bool kFaultsCompiledIn = true;

struct Fault {
  std::int64_t step = 0;
  int rank = 0;
  std::string kind;
};
/// Throws Error(usage) for text of another form and for a kind that is not in the table of fault.cpp.
std::vector<Fault> parse_faults(std::string_view text);

/// This process's rank, 0 until told. Throws Error(usage) if LOCKSTEP_FAULT cannot be understood.
void set_fault_rank(int rank);
/// The global step that the run is in, 0 until told.
void set_fault_step(std::int64_t step);
/// True if a fault of this kind is due now; the next call for the same fault says false.
bool fault_is(std::string_view kind);
/// True if any fault is to come in this process.
bool faults_planned();
/// SIGKILL to this process if a fault of this kind is due.
void fault_kill(std::string_view kind);

/// While it lives, this thread's step is another than the run's: of a checkpoint that is written beside it.
class FaultStep {
 public:
  explicit FaultStep(std::int64_t step);
  ~FaultStep();
  FaultStep(const FaultStep&) = delete;
  FaultStep& operator=(const FaultStep&) = delete;
  /// True if this thread has one.
  static bool present();

 private:
  std::int64_t previous_;
};

#else

inline constexpr bool kFaultsCompiledIn = false;
inline void set_fault_rank(int) {}
inline void set_fault_step(std::int64_t) {}
inline bool fault_is(std::string_view) { return false; }
inline bool faults_planned() { return false; }
inline void fault_kill(std::string_view) {}
class FaultStep {
 public:
  explicit FaultStep(std::int64_t) {}
  ~FaultStep() {}  // not trivial, so that an unused variable is no warning
  FaultStep(const FaultStep&) = delete;
  FaultStep& operator=(const FaultStep&) = delete;
};

#endif

}  // namespace lockstep
