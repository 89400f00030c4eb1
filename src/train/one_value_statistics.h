// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds batch norms that normalise a single value per channel, which says nothing about the data: the
// variance is 0, the output beta, and the gradient 0. Known from the shapes and the step plan before the
// first step. Local to each rank, without communication; every rank finds the same.
#pragma once

#include <string>

#include "data/step_plan.h"
#include "model/graph.h"

namespace lockstep {

/// A warning that names the layers and the batches, and says what to do; empty if there is no such layer.
std::string one_value_statistics(const Graph& graph, const StepPlan& plan);

}  // namespace lockstep
