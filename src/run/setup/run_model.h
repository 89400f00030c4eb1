// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The model of a run, for the samples of its data sets, and the names of what the run measures.
#pragma once

#include "run/sections/config.h"
#include "run/setup/run_data.h"
#include "session/run_names.h"
#include "train/model.h"

namespace lockstep {

class Optimizer;
class RunSchedules;

/// This rank alone. The sets know the shapes of their samples. `optimizer`: that of the configuration; null:
/// it has none. `memory_bytes`: what the device has; 0: not known. Throws Error(config) or Error(data) if
/// sets, labels and model do not fit each other, and Error(device) if the model is larger than the memory.
Model model_for(const RunData& data, const Config& config, const Optimizer* optimizer, Device& device,
                const RunNeeds& needs, double memory_bytes);
/// The same for a model that is not trained.
Model model_for(const RunData& data, const Config& config, Device& device, const RunNeeds& needs,
                double memory_bytes);

/// Sets may be without data. Throws Error(config) if a metric of eval.metrics does not fit.
RunNames run_names(const Config& config, const Model& model, const UsedDataset& train,
                   const UsedDataset& eval, const RunSchedules& schedules);

}  // namespace lockstep
