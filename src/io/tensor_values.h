// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a tensor of any type, for people and programs that compare them.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace lockstep {

/// All values of a tensor in host memory as double; exact for every type but int64 above 2^53.
std::vector<double> values_of(const Tensor& tensor);

}  // namespace lockstep
