// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep replay`: repeats a recorded step (step_record.h) and says whether it has the same bits.
#pragma once

#include <string>

#include "session/step_record.h"

namespace lockstep {

/// What replay says of the two: equal, or where they differ first, and what may explain it. `json`: as one
/// JSON object.
std::string replay_report(const StepRecord& recorded, const StepRecord& repeated, bool json);

/// On any number of ranks. Returns 0 if the step has the recorded bits, 1 if not.

}  // namespace lockstep
