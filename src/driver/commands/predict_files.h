// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which files of `lockstep predict --input` belong to which input of the samples.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/data_options.h"

namespace lockstep {

/// `arguments` are names and patterns of files: by input, for data with several inputs, as NAME=FILE. Without
/// any name all inputs are read from the same files. Throws Error(usage) if an input has no file.
std::vector<std::vector<std::string>> files_by_input(const DataOptions& options,
                                                     std::span<const std::string> arguments);

}  // namespace lockstep
