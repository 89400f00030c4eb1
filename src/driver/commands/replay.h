// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep replay`: repeats a recorded step (session/step_record.h) and compares the bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/setup/run_arguments.h"
#include "session/step_record.h"

namespace lockstep {

struct ReplayArguments {
  std::string run_dir;
  std::int64_t step = 0;
  std::vector<std::string> overrides;
  HangArguments hang;
  bool json = false, quiet = false;
};

/// The comparison of two records as text: equal, or where they first differ and what may explain it. `json`:
/// as one JSON object.
std::string replay_report(const StepRecord& recorded, const StepRecord& repeated, bool json);

}  // namespace lockstep
