// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run will record, as `lockstep check` prints it.
#pragma once

#include <string>

#include "data/dataset.h"
#include "run/sections/config.h"
#include "session/run_names.h"
#include "train/model.h"

namespace lockstep {

/// A line for the numbers of each step, one for each part of section summary that is switched on, with the
/// variables and layers that it chooses, and the memory that it keeps. Throws Error(config) for a part that
/// does not fit the run.
std::string recorded_text(const Config& config, const Model& model, const Dataset& train,
                          const RunNames& names, std::int64_t steps);

}  // namespace lockstep
