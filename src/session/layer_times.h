// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The times of layers from the spans of a profile, for TensorBoard's page Graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/trace.h"
#include "io/graph_summary.h"

namespace lockstep {

/// The time of each layer: of all threads, of its forward and its backward passes, mean of `steps` steps. The
/// layers follow one another, as if one thread had run them. Spans keep 127 characters of a name, so longer
/// names have no times.
std::vector<DeviceTimes> layer_times(std::span<const ThreadTrace> threads, std::int64_t steps,
                                     const std::string& device);

}  // namespace lockstep
