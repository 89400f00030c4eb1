// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared by tests under mpirun: what mpi_main.cpp started communication with.
#pragma once

#include "comm/environment.h"

namespace lockstep {

CommEnvironment& test_environment();

}  // namespace lockstep
