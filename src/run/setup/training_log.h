// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep train` logs about the run as a whole: versions, ranks, devices, sizes, where it continues.
#pragma once

#include "run/setup/run_context.h"
#include "run/setup/training.h"

namespace lockstep {

/// Called after the session's start. All ranks; the chief logs.
void log_training_start(RunContext& context, const Training& training);
/// Called after the run. The chief logs.
void log_training_end(RunContext& context, const Trainer& trainer);

/// What is odd about a run: averages that it is too short for (young_averages.h), samples that are set aside
/// and never evaluated. For `lockstep check`, too.
std::vector<std::string> warnings_of_run(const Config& config, const Graph& graph, const RunClock& clock);

/// What `lockstep check` says of optimizer.gating: when variables are updated, or why after all gradients
/// although another was asked for; empty: as usual. Hooks may still make it graph: the log of a run says so.
std::string gating_text(const Config& config, const Model& model, const Optimizer& optimizer, bool is_gpu);

}  // namespace lockstep
