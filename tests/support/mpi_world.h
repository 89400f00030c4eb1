// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared by tests under mpirun: all ranks of the run, created once by mpi_main.cpp.
#pragma once

#include "comm/communicator.h"

namespace lockstep {

Communicator& test_world();

}  // namespace lockstep
