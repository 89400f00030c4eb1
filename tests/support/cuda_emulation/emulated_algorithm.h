// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The algorithm that a stand-in for a library claims to have chosen: LOCKSTEP_EMULATED_ALGORITHM. "by rank":
// another one on each rank.
#pragma once

#include <cstdlib>
#include <string>

namespace lockstep::cuda {

inline std::string emulated_algorithm() {
  const char* name = std::getenv("LOCKSTEP_EMULATED_ALGORITHM");
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (name == nullptr) return "plain loops";
  return std::string(name) == "by rank" && rank != nullptr ? std::string("that of rank ") + rank : name;
}

}  // namespace lockstep::cuda
