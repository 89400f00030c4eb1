// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What may be wrong with a training run and needs its data and its model to be seen: the same checks for
// `lockstep train`, before its first step, and for `lockstep check`.
#pragma once

#include <memory>
#include <string>

#include "run/sections/config.h"
#include "run/setup/opened_data.h"
#include "session/run_names.h"
#include "train/model.h"
#include "train/run_schedules.h"

namespace lockstep {

/// What a command needs of a run.
struct RunNeeds {
  bool train = false, eval = false;  ///< data sets
  bool updates = false;              ///< the variables are updated: gradients and slots take memory
  int ranks = 1;                     ///< that share the slots with optimizer.shard
  int ranks_on_host = 1;             ///< that share the memory for data
  /// The run directory that keeps the numbers of data.normalize; empty: they are computed.
  std::string kept_in = {};
  /// The run directory in which readers keep where records are, also of a new run; empty: none.
  std::string index_in = {};
};

/// The data sets of a run and the model for them.
struct DataAndModel {
  UsedDataset train, eval;  ///< without data: not wanted, or none
  Model model;
};
/// How the training and the evaluation set are used.
DatasetUse use_of_training_set(const Config& config, const RunNeeds& needs);
DatasetUse use_of_evaluation_set(const RunNeeds& needs);
/// The sets alone. This rank alone. `opened`: with its bad records. Throws Error(config) or Error(data).
DataAndModel read_data(const Config& config, const RunNeeds& needs, OpenedData opened);
/// The model for them. This rank alone. The sets know the shapes of their samples (knows_shapes()).
/// `memory_bytes`: what it has on the device; 0: not known. Throws Error(config) or Error(data) if sets,
/// labels and model do not fit each other, and Error(device) if the model is larger than the memory.
void add_model(DataAndModel& all, const Config& config, Device& device, const RunNeeds& needs,
               double memory_bytes);
/// The sets know the shapes of their samples.
bool knows_shapes(const DataAndModel& all);

/// Sets may be without data. Throws Error(config) if a metric of eval.metrics does not fit.
RunNames run_names(const Config& config, const Model& model, const UsedDataset& train,
                   const UsedDataset& eval);
/// The names that the configuration uses: checkpoint.best_metric and the options of hooks. Throws
/// Error(config) with position.
void check_names(const Config& config, const RunNames& names);

/// What the gradient noise scale needs. Throws Error(config) with position.
void check_noise_scale(const Config& config, const VariableStore& variables, std::int64_t shards);

/// The metrics that schedules follow. Throws Error(config) with position.
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
/// `more_bytes`: of its other state. Throws Error(checkpoint).
void check_room(const Config& config, const std::string& run_dir, const VariableStore& variables,
                const Optimizer& optimizer, std::size_t more_bytes);

}  // namespace lockstep
