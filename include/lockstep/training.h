// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A configuration as typed structs, and a training loop of a program's own (docs/library.md).
#pragma once

#include "api/launch.h"
#include "run/sections/config.h"
#include "run/setup/run_context.h"
#include "run/setup/train_setup.h"
#include "train/evaluation.h"
#include "train/gradients.h"
#include "train/step_metrics.h"
#include "train/step_update.h"
#include "train/trainer.h"
