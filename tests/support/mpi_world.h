// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What tests under mpirun share: all ranks of the run, made once by mpi_main.cpp.
#pragma once

#include "comm/communicator.h"

namespace lockstep {

Communicator& test_world();

}  // namespace lockstep
