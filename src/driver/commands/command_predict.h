// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep predict`: the model's outputs for the samples of a file.
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_predict(const CommandLine& line);

}  // namespace lockstep
