// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the event files say about a run: its graph, hyper-parameters and configuration.
#pragma once

#include "run/sections/config.h"
#include "session/hooks/run_description_hook.h"
#include "train/model.h"

namespace lockstep {

/// The description that the section `summary` asks for.
RunDescriptionHook::Options run_description(const Config& config, const Model& model, bool on_gpu,
                                            bool evaluates);
/// The variables of embedding layers.
std::vector<std::string> embedding_tables(const Model& model);

}  // namespace lockstep
