// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All schedules. To add one: a file in schedules/ that defines its ScheduleEntry, a line here, a test, a line
// in docs/schedules.md (docs/adding_an_optimizer.md).
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

LOCKSTEP_TABLE(ScheduleEntry, schedule_table, "schedule", LOCKSTEP_SCHEDULES)

}  // namespace lockstep
