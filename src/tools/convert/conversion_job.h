// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A conversion from its source to its files. With several files (--shards) ranks write whole files; one file
// is written by rank 0. The bytes depend on neither ranks nor threads. Ranks agree after each round of work,
// so that errors, signals and progress are those of all.
#pragma once

#include "comm/environment.h"
#include "io/sample_file.h"
#include "run/sections/config.h"
#include "tools/convert/convert_arguments.h"

namespace lockstep {

/// All ranks. Converts the set that `arguments` name of `config`, and prints what was written. Returns the
/// exit code: that of an interruption, which the same command continues. Throws SharedError.
int convert_data(CommEnvironment& environment, const Config& config, const ConvertArguments& arguments,
                 SampleFormat format);

}  // namespace lockstep
