// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer of one's own (docs/adding_a_layer.md).
#pragma once

#include <lockstep/base.h>

#include "model/initializer.h"
#include "model/layer.h"
#include "model/layer_table.h"
