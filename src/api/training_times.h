// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// When a call of Estimator::train() evaluates, and how long it trains, as changes of a configuration. Each
// evaluation has a checkpoint.
#pragma once

#include <cstdint>

namespace lockstep {

struct Config;
struct RunConfig;
struct TrainOptions;

/// A configuration with what a call of train() changes.
Config changed(const Config& config, const TrainOptions& options);
/// Evaluations at least `wanted` steps apart; 0: at the end only.
void set_evaluations(RunConfig& run, std::int64_t wanted);

}  // namespace lockstep
