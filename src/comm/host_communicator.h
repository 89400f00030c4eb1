// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A communicator of the program around Lockstep: an MPI_Comm, taken as it is. This header does not need
// mpi.h, in which MPI_Comm is a pointer (Open MPI) or an int (MPICH).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace lockstep {

class HostCommunicator {
 public:
  template <typename Comm>
  requires std::is_pointer_v<Comm> || std::same_as<Comm, int> HostCommunicator(Comm comm)
      : bytes_(sizeof comm) {  // NOLINT: an MPI_Comm is what is meant
    std::memcpy(&handle_, &comm, sizeof comm);
  }

  /// The MPI_Comm. Throws Error(usage) if the program was compiled with another MPI library than Lockstep.
  template <typename Comm>
  Comm as() const {
    require_bytes(sizeof(Comm));
    Comm comm;
    std::memcpy(&comm, &handle_, sizeof comm);
    return comm;
  }

 private:
  void require_bytes(std::size_t bytes) const;

  std::uintptr_t handle_ = 0;
  std::size_t bytes_;
};

}  // namespace lockstep
