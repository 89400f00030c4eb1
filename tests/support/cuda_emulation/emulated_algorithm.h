// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The algorithm that a stand-in for a library claims to have chosen: LOCKSTEP_EMULATED_ALGORITHM.
#pragma once

#include <cstdlib>
#include <string>

namespace lockstep::cuda {

inline std::string emulated_algorithm() {
  const char* name = std::getenv("LOCKSTEP_EMULATED_ALGORITHM");
  return name == nullptr ? "plain loops" : name;
}

}  // namespace lockstep::cuda
