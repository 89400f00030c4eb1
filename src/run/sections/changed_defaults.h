// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Options of layers whose default is not that of earlier programs. The configuration that a run keeps states
// their values, so a run does not depend on the defaults of the program that continues it. One that does not
// state them was written by an earlier program, and means the former default. To change a default of a layer:
// a line in the table of changed_defaults.cpp.
#pragma once

#include <string>
#include <vector>

#include "config/node.h"

namespace lockstep {

/// Writes today's values into all layers of the configuration that do not give such an option: in
/// model.layers, blocks and repeats.
void state_layer_defaults(Node& root);

/// The same with the values of earlier programs. Returns a sentence per option that was written, for the log.
std::vector<std::string> state_former_layer_defaults(Node& root);

}  // namespace lockstep
