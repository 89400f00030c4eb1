// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What section `cluster` does not go with.
#pragma once

#include "run/sections/config.h"
#include "train/model.h"

namespace lockstep {

class Optimizer;

/// Throws Error(config) with position. `records`: steps are to be recorded.
void check_servers(const Config& config, const Model& model, const Optimizer& optimizer, bool on_gpu,
                   bool records);

}  // namespace lockstep
