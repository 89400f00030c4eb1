// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A loss of one's own: a class, or a formula.
#pragma once

#include <lockstep/base.h>

#include "model/loss.h"
#include "model/losses/formula_loss.h"
