// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/host_communicator.h"

#include "comm/environment.h"
#include "core/error.h"

namespace lockstep {

void HostCommunicator::require_bytes(std::size_t bytes) const {
  LOCKSTEP_REQUIRE(
      bytes == bytes_, ErrorKind::usage,
      "the communicator is not one of the MPI library that Lockstep was built with ({}): compile both with "
      "the same one",
      mpi_library_version());
}

}  // namespace lockstep
