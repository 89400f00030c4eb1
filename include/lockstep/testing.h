// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests of a program's own parts: gradients of a layer against differences.
#pragma once

#include "model/gradient_check.h"
