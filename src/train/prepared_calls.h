// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "model/graph.h"
#include "train/executor_context.h"

namespace lockstep {

/// Prepares the layers for microshards of these sizes, as an executor does, and frees what that took on the
/// device besides.
Graph::Calls prepared_calls(const ExecutorContext& context, bool training,
                            std::span<const std::int64_t> sample_counts);

}  // namespace lockstep
