// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A loss of one's own.
#pragma once

#include <lockstep/base.h>

#include "model/loss.h"
