// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Data files are opened in a child process first: see try_data_files().
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/data_options.h"
#include "run/sections/config.h"

namespace lockstep {

/// try_data_files() on the rank that the launcher calls 0, for the data sets and for `files` by input.
/// Before MPI starts.
void try_data_on_chief(Config& config, std::span<const std::vector<std::string>> files = {},
                       DataTrial trial = {});

}  // namespace lockstep
