// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/input_budget.h"

#include <limits>

#include "core/error.h"

namespace lockstep {

std::uint64_t InputBudget::limit_of(std::uint64_t file_bytes) {
  std::uint64_t limit = 0;
  if (__builtin_mul_overflow(file_bytes, kTimesFile, &limit) ||
      __builtin_add_overflow(limit, kFreeBytes, &limit))
    return std::numeric_limits<std::uint64_t>::max();
  return limit;
}

void InputBudget::fail_bytes() const {
  throw Error(ErrorKind::data,
              fmt::format("would take more than {} bytes of memory: the limit for a file of {} bytes ({} MiB "
                          "and {} times its size)",
                          limit(), file_bytes_, kFreeBytes >> 20, kTimesFile),
              path_,
              "The file may be damaged, or made to harm. If it is yours, write each tensor once, without "
              "compression.");
}

void InputBudget::fail_visits() const {
  throw Error(
      ErrorKind::data,
      fmt::format("leads to more than {} objects: some are linked, or referred to, many times", kMostVisits),
      path_, "The file may be damaged, or made to harm. If it is yours, write each tensor once.");
}

}  // namespace lockstep
