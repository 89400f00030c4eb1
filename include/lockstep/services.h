// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads next to the training loop (docs/services.md).
#pragma once

#include "core/bounded_queue.h"
#include "core/coordinator.h"
#include "core/queue_runner.h"
#include "core/timed_service.h"
#include "core/timer.h"
