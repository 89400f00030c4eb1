// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Ready-made models of tables (docs/estimator.md).
#pragma once

#include <lockstep/estimator.h>

#include "api/ready_made.h"
