// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Section experiment: what it asks for, and whether the run has it.
#pragma once

#include <string>

#include "run/sections/config.h"

namespace lockstep {

/// Throws Error(config) for a schedule that needs an evaluation set where there is none.
void check_experiment(const Config& config, const std::string& schedule);
/// Lines for `lockstep check`; empty if the configuration has no section experiment.
std::string experiment_text(const Config& config);

}  // namespace lockstep
