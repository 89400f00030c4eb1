// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep predict --prompt`: text that a language model makes, token by token. One process.
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_sample(const CommandLine& line);

}  // namespace lockstep
