// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader hdf5: what its options say, and the datasets of a file that they name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/params.h"
#include "data/readers/hdf5_store.h"
#include "data/step_window.h"

namespace lockstep {

struct Hdf5Options {
  std::string features;
  std::optional<std::string> labels;
  bool samples_last = false, channels_first = false;
  std::vector<std::int64_t> channels;  ///< empty: all
  std::optional<std::vector<std::string>> classes;
  bool allow_fill = false;
  std::optional<StepWindow> window;
  std::optional<std::string> groups;
  std::vector<std::string> columns;  ///< of a table; empty: all
};

std::span<const ParamSpec> hdf5_table();

/// The datasets of a file that the options name. The caller holds the Hdf5Lock.
Hdf5Part hdf5_part(const std::string& path, const Params& params);

}  // namespace lockstep
