// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples that the program itself gives, by name: the reader `program` opens them, so that a configuration
// can say which samples a run uses, and everything that belongs to a reader's samples (transforms, choice,
// memory, the comparison between ranks and jobs) belongs to these.
#pragma once

#include <functional>
#include <string>

#include "data/dataset_parts.h"

namespace lockstep {

/// Gives the samples, the same on all ranks. Its parts have no transform; it may be called several times.
using ProgramInput = std::function<DatasetParts()>;

/// Sets the samples of a name, or replaces them. One thread.
void set_program_input(const std::string& name, ProgramInput input);
/// Gives them back. Sets that are open keep theirs.
void forget_program_input(const std::string& name);

}  // namespace lockstep
