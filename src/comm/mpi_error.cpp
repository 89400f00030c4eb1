// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_error.h"

#include <mpi.h>

#include <array>

#include "core/error.h"

namespace lockstep {

static_assert(MPI_SUCCESS == 0);

void throw_mpi_error(int code, const char* call, const std::string& where) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  std::string reason = length > 0 ? std::string(text.data()) : fmt::format("MPI error {}", code);
  // MPICH adds a stack of calls, a line each, of which the last may be empty.
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  for (std::size_t at = reason.find('\n'); at != std::string::npos; at = reason.find('\n', at))
    reason.replace(at, 1, " | ");
  throw Error(ErrorKind::communication, fmt::format("{} failed in {}: {}", call, where, reason));
}

}  // namespace lockstep
