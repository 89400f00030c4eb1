// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a tensor of any type, for comparisons by users and programs.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace lockstep {

/// All values of a tensor in host memory as double. Exact for every type except int64 above 2^53.
std::vector<double> values_of(const Tensor& tensor);

}  // namespace lockstep
