// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversion of MPI's return codes to errors. Does not need mpi.h: codes are ints, and 0 is success.
#pragma once

#include <string>

namespace lockstep {

/// Throws Error(communication): "MPI_Bcast failed in <where>: <MPI's text>".
[[noreturn]] void throw_mpi_error(int code, const char* call, const std::string& where);

inline void check_mpi(int code, const char* call, const char* where) {
  if (code != 0) [[unlikely]]
    throw_mpi_error(code, call, where);
}

}  // namespace lockstep
