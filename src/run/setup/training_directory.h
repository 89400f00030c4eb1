// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The run directory of `lockstep train`: taking it, checking whether its run may continue, and the files that
// describe the run. On-disk names: do not change.
#pragma once

#include <memory>
#include <string>

#include "io/run_lock.h"
#include "run/setup/run_arguments.h"
#include "run/setup/run_context.h"
#include "session/run_state.h"

namespace lockstep {

/// The chief creates the directory and locks it; null on other ranks. All ranks.
std::unique_ptr<RunLock> take_run_directory(Communicator& world, const std::string& run_dir);

/// The checkpoint that the run continues from, checked against --resume and the seed. The same, or the same
/// Error, on all ranks. A run of an earlier program keeps that program's defaults of layers
/// (changed_defaults.h): `config` and the found configuration get them.
FoundCheckpoint checkpoint_to_resume(Communicator& world, Resume resume, Config& config,
                                     const std::string& run_dir);

/// The chief writes config.yaml, a copy of it for job number `job`, and the vocabulary of a text; in a
/// resumed run it checks that the vocabulary is the same. All ranks.
void write_run_description(RunContext& context, const std::string& run_dir, bool resumed, int job);

}  // namespace lockstep
