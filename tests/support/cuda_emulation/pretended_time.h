// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime.h"

namespace lockstep::emulation {

/// By how much events' clock is ahead of the real one: what engines pretended to take. Used while the
/// runtime's lock is held.
Clock::duration& pretended_time();

}  // namespace lockstep::emulation
