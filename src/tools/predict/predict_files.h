// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which files of `lockstep predict --input` belong to which input or target of the samples.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/data_options.h"

namespace lockstep {

/// `arguments` are names and patterns of files; NAME=FILE is for one input, or target. The result has the
/// files of each of sets_of(options). Files without a name are for all inputs. Targets have files if they are
/// named, all or none. Throws Error(usage) if an input has no file.
std::vector<std::vector<std::string>> files_by_input(const DataOptions& options,
                                                     std::span<const std::string> arguments);

}  // namespace lockstep
