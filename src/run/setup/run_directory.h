// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The target of train, evaluate and predict: a run directory (its config.yaml and newest checkpoint), or a
// configuration file. A checkpoint has its configuration: evaluate and predict also take the file of one, and
// a folder with one does not need config.yaml.
#pragma once

#include <span>
#include <string>

#include "run/sections/config.h"
#include "run/setup/run_arguments.h"

namespace lockstep {

struct RunTarget {
  Config config;
  std::string run_dir;
  std::string checkpoint = {};  ///< the target, if it is the file of one
};

/// The configuration in a checkpoint, which has this text. Throws Error(checkpoint) if it is empty, and
/// Error(config).
Config config_in(const std::string& text, const std::string& checkpoint,
                 std::span<const std::string> overrides = {});
/// The run directory that the file of a checkpoint lies in; else its folder.
std::string run_directory_of(const std::string& checkpoint);

/// Whether the checkpoint that a command would take describes its samples (SampleDescription), as the names
/// and headers of files say. Verifies nothing, and throws nothing.
bool describes_samples(const std::string& run_dir, const std::string& checkpoint);

/// Throws Error(usage) about an override (--set) of section data that has no effect on a model whose samples
/// are described: what decided its words when it was trained, and, if it `predicts` the samples of --input,
/// the files of the data sets.
void refuse_without_effect(std::span<const std::string> overrides, bool predicts);

/// Reads the configuration. Before MPI starts. Throws Error(config).
RunTarget resolve_target(const RunArguments& arguments);
/// The target of `train`. Throws Error(usage), too: a run directory is its own --run-dir.
RunTarget resolve_target(const TrainArguments& arguments);

}  // namespace lockstep
