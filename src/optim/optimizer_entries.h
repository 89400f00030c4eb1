// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where optimizer_table.cpp gets the rules of Lockstep from.
#pragma once

#include <vector>

#include "optim/optimizer.h"

namespace lockstep {

/// The rules of kernels/rules.h that configurations name.
void add_element_optimizers(std::vector<OptimizerEntry>& entries);

}  // namespace lockstep
