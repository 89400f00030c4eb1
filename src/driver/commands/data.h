// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The arguments of `lockstep data`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct DataArguments {
  std::string config;
  std::optional<std::int64_t> samples;  ///< of each set to look at; empty: 10,000, or fewer large ones
  std::string png;                      ///< a contact sheet; empty: none
  std::optional<std::int64_t> show;     ///< pictures in the terminal; without a value: 4 if there is one
  bool json = false;
  std::vector<std::string> overrides;
};

}  // namespace lockstep
