// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The variables of a model, for `lockstep import --like`. One process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/exchange/import_plan.h"

namespace lockstep {

/// `target`: a run directory or a checkpoint; or a configuration (.yaml, .yml), whose data are opened because
/// they say what shape a sample has. In the order of the layers. Throws what `lockstep check` throws for a
/// configuration, and Error(checkpoint).
std::vector<WantedVariable> model_variables(const std::string& target, std::string_view checkpoint = {});

}  // namespace lockstep
