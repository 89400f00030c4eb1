// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep neighbours`: the words whose rows of a variable have the largest cosine with those of given
// words.
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_neighbours(const CommandLine& line);

}  // namespace lockstep
