// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks of layers: named groups with parameters (`model.blocks`), `repeat`, and the nets that the program
// brings along (built_in_nets.h). They are expanded to plain layers before anything else reads the model.
#pragma once

#include <string>
#include <vector>

#include "config/params.h"

namespace lockstep {

/// The section `model` with its list of layers expanded: a use of a block or a repeat becomes its layers,
/// each with a name: "stage1/2/conv1". Without blocks the section stays as it is. Throws Error(config) with
/// position; a mistake in a block is at its definition, one in an argument where it is used.
Node with_expanded_blocks(const Node& model);
/// What a list of layers may name in addition to layers: the blocks of the section, `repeat`, the built-in
/// nets.
std::vector<std::string> block_names(const Node& model);

}  // namespace lockstep
