// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A model that is trained, evaluated and used in a program's own words (docs/estimator.md).
#pragma once

#include "api/estimator.h"
#include "api/formula.h"
#include "api/launch.h"
#include "api/options.h"
