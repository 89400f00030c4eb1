// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/dtype.h"
#include "core/named_shape.h"
#include "model/graph.h"

namespace lockstep {

class Heads;
struct ModelOptions;

/// The graph of a model for samples with these inputs (Dataset::input_shapes()), with the outputs that the
/// heads read; not finished.
Graph graph_of(const ModelOptions& options, std::span<const NamedShape> inputs, const Heads& heads,
               DType activations);

}  // namespace lockstep
