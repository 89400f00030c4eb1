// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All schedules. To add one: a file in schedules/ that defines its ScheduleEntry, a line here, a test, a line
// in docs/schedules.md (docs/adding_an_optimizer.md).
#include <algorithm>
#include <vector>

#include "optim/schedule.h"

namespace lockstep {

// One per line. Each entry is defined in its family's file in schedules/.
#define LOCKSTEP_SCHEDULES(SCHEDULE)        \
  SCHEDULE(kConstantSchedule)               \
  SCHEDULE(kExponentialDecaySchedule)       \
  SCHEDULE(kNaturalExpDecaySchedule)        \
  SCHEDULE(kInverseTimeDecaySchedule)       \
  SCHEDULE(kPiecewiseConstantSchedule)      \
  SCHEDULE(kStepDecaySchedule)              \
  SCHEDULE(kPolynomialDecaySchedule)        \
  SCHEDULE(kCosineDecaySchedule)            \
  SCHEDULE(kCosineRestartsSchedule)         \
  SCHEDULE(kLinearCosineDecaySchedule)      \
  SCHEDULE(kNoisyLinearCosineDecaySchedule) \
  SCHEDULE(kOneCycleSchedule)               \
  SCHEDULE(kReduceOnPlateauSchedule)

#define LOCKSTEP_DECLARE(entry) extern const ScheduleEntry entry;
LOCKSTEP_SCHEDULES(LOCKSTEP_DECLARE)
#undef LOCKSTEP_DECLARE

namespace {
std::vector<ScheduleEntry>& entries() {
#define LOCKSTEP_LIST(entry) entry,
  static std::vector<ScheduleEntry> table = {LOCKSTEP_SCHEDULES(LOCKSTEP_LIST)};
#undef LOCKSTEP_LIST
  return table;
}
}  // namespace

std::span<const ScheduleEntry> schedule_table() { return entries(); }

void register_schedule(const ScheduleEntry& entry) {
  LOCKSTEP_REQUIRE(std::ranges::none_of(schedule_table(),
                                        [&](const ScheduleEntry& other) { return other.name == entry.name; }),
                   ErrorKind::config, "a schedule named '{}' exists already", entry.name);
  entries().push_back(entry);
}

}  // namespace lockstep
