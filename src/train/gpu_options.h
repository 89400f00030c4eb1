// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `gpu` of a configuration: how a rank uses its GPU and NVIDIA's libraries. The CPU ignores it.
#pragma once

#include <optional>
#include <span>

#include "config/params.h"

namespace lockstep {

struct GpuOptions {
  bool check_plans = true;  ///< what a library chooses for a shape is checked before it is used
  bool measures = false;    ///< the fastest algorithms are taken, not those that the libraries expect to be
  std::optional<int> branches;  ///< of a training step; none: choose_branches() chooses
};

/// Options of the section `gpu`.
std::span<const ParamSpec> gpu_table();
/// `section` is checked against gpu_table().
GpuOptions gpu_options(const Params& section);

}  // namespace lockstep
