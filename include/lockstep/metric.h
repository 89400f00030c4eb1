// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A metric of one's own (docs/adding_a_metric.md).
#pragma once

#include <lockstep/base.h>

#include "model/metric.h"
