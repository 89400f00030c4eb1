// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrays and tensors as matrices of Eigen, which the program must have.
#pragma once

#include "core/eigen_view.h"
