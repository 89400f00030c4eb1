// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The arguments of `lockstep neighbours`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct NeighboursArguments {
  std::string run_dir;
  std::vector<std::string> words;
  std::string variable;    ///< empty: the only one that fits
  std::string vocabulary;  ///< empty: that of the run directory
  std::string checkpoint;  ///< a file, "last" or "best"; empty: the newest intact one
  std::int64_t count = 10;
  bool json = false;
};

}  // namespace lockstep
