// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What may be wrong with a training run and needs its data and its model to be seen: the same checks for
// `lockstep train`, before its first step, and for `lockstep check`.
#pragma once

#include <span>
#include <string>

#include "run/sections/config.h"
#include "session/hook.h"
#include "session/run_names.h"
#include "train/run_schedules.h"

namespace lockstep {

/// The names that the configuration uses: those of metrics (checkpoint.best_metric, exports, sweep), with the
/// options that say which values are better, and the options of hooks. Throws Error(config) with position.
void check_names(const Config& config, const RunNames& names);

/// An early-stopping hook waits for the direction in which its metric improves. Throws Error(config).
void check_direction(const Hook& hook, std::span<const MetricSpec> metrics);

/// What the gradient noise scale needs. Throws Error(config) with position.
void check_noise_scale(const Config& config, const VariableStore& variables, std::int64_t shards);

/// The metrics that schedules follow; tells the schedules which values are better. Throws Error(config) with
/// position.
void check_schedules(const Config& config, const RunSchedules& schedules, const RunNames& names);

/// What optimizer.shard does not go with: a GPU, comm.reduction: fast, a rule that needs whole variables, the
/// record of a step. Throws Error(config) with position.
void check_shard(const Config& config, const Optimizer& optimizer, bool on_gpu, bool records);

/// What comm.compress does not go with: comm.reduction: fast, and sparse gradients on a GPU. Throws
/// Error(config) with position.
void check_compress(const Config& config, const VariableStore& variables, bool on_gpu);

/// The folder, or the one above it that exists, may be written. Throws Error(config).
void check_run_directory(const std::string& run_dir);
/// The disk of the run directory has room for the checkpoints that will be kept. The optimizer has its slots;
/// `more_bytes`: of its other state. `train` is what checkpoints describe. Throws Error(checkpoint).
void check_room(const Config& config, const std::string& run_dir, const Dataset& train,
                const VariableStore& variables, const Optimizer& optimizer, std::size_t more_bytes);

}  // namespace lockstep
