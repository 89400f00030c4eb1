// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/clock_offsets.h"

#include "core/trace.h"

namespace lockstep {

std::vector<ClockOffset> measure_clocks(Communicator& group) {
  constexpr int kRounds = 20;
  constexpr const char* kWhat = "clocks of the ranks";
  char question = 0;
  std::int64_t answer = 0;
  if (group.rank() != 0) {
    for (int round = 0; round < kRounds; ++round) {
      group.receive(&question, sizeof question, 0, kWhat);
      answer = trace_detail::now_ns();
      group.send(&answer, sizeof answer, 0, kWhat);
    }
    return {};
  }
  std::vector<ClockOffset> offsets(1);
  for (int rank = 1; rank < group.size(); ++rank) {
    ClockOffset best{};
    for (int round = 0; round < kRounds; ++round) {
      const std::int64_t asked = trace_detail::now_ns();
      group.send(&question, sizeof question, rank, kWhat);
      group.receive(&answer, sizeof answer, rank, kWhat);
      const std::int64_t took = trace_detail::now_ns() - asked;
      const std::int64_t error = (took + 1) / 2;
      if (round == 0 || error < best.error_ns) best = {answer - (asked + took / 2), error};
    }
    offsets.push_back(best);
  }
  return offsets;
}

}  // namespace lockstep
