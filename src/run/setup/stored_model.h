// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The model of a checkpoint with all that prediction needs of its data, on the CPU, without the data and
// without ranks of its own: for a program that predicts (api/predictor.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/reader_dataset.h"
#include "run/sections/config.h"
#include "session/run_state.h"
#include "train/model.h"
#include "train/output_units.h"

namespace lockstep {

struct StoredModel {
  std::string path;  ///< of the checkpoint
  std::int64_t global_step = 0;
  std::int64_t shards = 1;
  bool averaged_variables = false;
  Config config;
  UsedDataset samples;  ///< the form of the training set, whose inputs are float32
  std::vector<ReaderDataset>
      inputs;   ///< with the stages that prediction has: fixed transforms, those of evaluation
  Model model;  ///< with the values of its variables
  std::vector<OutputUnits> units;  ///< by head
};

/// The model of a checkpoint that open_checkpoint() has found, in `target`: a run directory, an exported
/// folder or the file itself. `averages`: variables have the values of their moving averages, where there are
/// some. All ranks. Throws Error(checkpoint), also if it does not describe its samples, and Error(config).
StoredModel load_stored_model(Communicator& world, const std::string& target, const FoundCheckpoint& found,
                              bool averages);
/// The same for a program without ranks. `checkpoint`: of a run directory, "last", "best" or a step; empty:
/// the last one. Every byte of it is verified.
StoredModel load_stored_model(const std::string& target, const std::string& checkpoint, bool averages);

/// The same net once more, with variables of the same numbers and without their values.
Graph graph_of(const StoredModel& stored);

}  // namespace lockstep
