// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The entry point of a plugin, a shared object that `lockstep` loads; with what a plugin registers.
#pragma once

#include "session/plugin.h"
