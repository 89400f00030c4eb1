// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/prepared_calls.h"

#include "kernels/backend.h"

namespace lockstep {

Graph::Calls prepared_calls(const ExecutorContext& context, bool training,
                            std::span<const std::int64_t> sample_counts) {
  Graph::Calls calls = context.graph.prepare({.kernels = context.kernels,
                                              .device = context.device,
                                              .lanes = static_cast<int>(context.lanes.size()),
                                              .training = training,
                                              .sample_counts = sample_counts,
                                              .wants_input_gradient = {},
                                              .shards = context.shards});
  for (Backend* backend : backends()) backend->free_setup_memory();  // before the executor allocates its own
  return calls;
}

}  // namespace lockstep
