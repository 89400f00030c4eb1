// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train`: loads and checks the configuration before MPI starts, trains or continues, returns the
// exit code (75: checkpointed, wants to be queued again).
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_train(const CommandLine& line);

}  // namespace lockstep
