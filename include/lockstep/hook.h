// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A hook of one's own (docs/adding_a_hook.md). One that uses the trainer (gradients) includes training.h, one
// that uses variables layer.h.
#pragma once

#include "session/hook.h"
#include "session/hook_context.h"
