// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/clock_offsets.h"

#include "core/trace.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "clocks of the ranks";
constexpr char kTell = 1, kEnd = 0;
// Where ranks share a processor, a rank answers when it has its turn: more questions find a better moment.
constexpr int kFewestRounds = 20, kMostRounds = 200;
constexpr std::int64_t kGoodError = 50'000;

void answer(Communicator& group) {
  for (;;) {
    char question = kEnd;
    group.receive(&question, sizeof question, 0, kWhat);
    if (question == kEnd) return;
    const std::int64_t now = trace_detail::now_ns();
    group.send(&now, sizeof now, 0, kWhat);
  }
}

ClockOffset ask(Communicator& group, int rank) {
  ClockOffset best{};
  for (int round = 0; round < kMostRounds; ++round) {
    if (round >= kFewestRounds && best.error_ns <= kGoodError) break;
    std::int64_t answer = 0;
    const std::int64_t asked = trace_detail::now_ns();
    group.send(&kTell, sizeof kTell, rank, kWhat);
    group.receive(&answer, sizeof answer, rank, kWhat);
    const std::int64_t took = trace_detail::now_ns() - asked;
    const std::int64_t error = (took + 1) / 2;
    if (round == 0 || error < best.error_ns) best = {answer - (asked + took / 2), error};
  }
  group.send(&kEnd, sizeof kEnd, rank, kWhat);
  return best;
}

}  // namespace

std::vector<ClockOffset> measure_clocks(Communicator& group) {
  if (group.rank() != 0) {
    answer(group);
    return {};
  }
  std::vector<ClockOffset> offsets(1);
  for (int rank = 1; rank < group.size(); ++rank) offsets.push_back(ask(group, rank));
  return offsets;
}

}  // namespace lockstep
