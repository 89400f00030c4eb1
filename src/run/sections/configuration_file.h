// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A configuration as it is written in files: `include` merges other files into it, and ${NAME} in a value
// stands for a variable of the environment. Both are resolved here; positions stay those of the files in
// which values stand.
#pragma once

#include <string>

#include "config/params.h"

namespace lockstep {

/// Reads a file with all that it includes, and the environment. Throws Error(config) with position: of a file
/// that includes itself with the chain of files.
Node read_configuration(const std::string& path);

/// Replaces ${NAME} and ${NAME:-default} in all values by variables of the environment, and $${ by ${. Not in
/// data.stage_to, where each rank has variables of its own. Throws Error(config) for one that is not set and
/// has no default.
void replace_variables(Node& root);
/// The inverse for a configuration that is written to a file: ${ becomes $${.
void escape_variables(Node& root);

/// `over` on top of `base`: maps are merged key by key, other values replaced. A choice of another name (a
/// rule, a loss, a schedule, a reader) replaces the whole choice, and train.steps and train.epochs replace
/// each other.
Node merged_configuration(const Node& base, const Node& over);

}  // namespace lockstep
