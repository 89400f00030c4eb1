// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The connections of a graph as they were written, for what shows or exports a net. Graph::finish() gives a
// batch_norm that also computes the addition after it the other operand of that addition as one more input.
#pragma once

#include <span>

#include "model/graph.h"

namespace lockstep {

/// The inputs of node `node` as the configuration or the program gave them.
std::span<const Graph::Source> written_inputs(const Graph& graph, int node);

}  // namespace lockstep
