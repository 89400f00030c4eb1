// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens the set that `lockstep convert` writes.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "run/sections/config.h"
#include "tools/convert/convert_arguments.h"
#include "tools/convert/sample_source.h"

namespace lockstep {

/// Leaves the input or target --input in config.data, as the only one. Throws Error(config) if a file cannot
/// have what the command asks for.
void choose_input(Config& config, const ConvertArguments& arguments);
/// The options of the set that is converted, as written.
Node options_of_set(const Config& config, const ConvertArguments& arguments);
/// Ranks share the search for bad records, and, for --transforms, the numbers of data.normalize and
/// data.whiten, which are those of the training set. All ranks. Throws SharedError.
std::unique_ptr<SampleSource> open_source(Communicator& world, const Config& config,
                                          const ConvertArguments& arguments, SampleFormat format,
                                          int ranks_on_host, int threads);

}  // namespace lockstep
