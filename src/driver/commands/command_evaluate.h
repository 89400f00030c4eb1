// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep evaluate`: exact metrics over the whole evaluation set, as JSON on standard output.
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_evaluate(const CommandLine& line);

}  // namespace lockstep
