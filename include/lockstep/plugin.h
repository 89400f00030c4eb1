// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The entry point of a plugin, a shared object that `lockstep` loads; with what a plugin registers.
#pragma once

#include "data/reader_table.h"
#include "data/transform.h"
#include "model/function_layer.h"
#include "model/layer_table.h"
#include "model/loss.h"
#include "optim/optimizer_table.h"
#include "optim/schedule.h"
#include "session/hooks/hook_table.h"
#include "session/plugin.h"
