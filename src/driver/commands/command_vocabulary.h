// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep vocabulary`: the words of a training set, as a file. One process, no run.
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_vocabulary(const CommandLine& line);

}  // namespace lockstep
