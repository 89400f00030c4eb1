// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/step_graphs.h"

#include <algorithm>

namespace lockstep {

StepGraphs::StepGraphs(Device& device, void* stream) : device_(device), stream_(stream) {}

StepGraphs::~StepGraphs() {
  for (const Recording& recording : recordings_)
    if (recording.graph != nullptr) device_.destroy_graph(recording.graph);
}

void StepGraphs::run(const Key& key, bool may_record, FunctionRef<void()> work) {
  if (device_.is_host() || !may_record) return work();
  const auto found = std::ranges::find(recordings_, key, &Recording::key);
  if (found == recordings_.end()) {
    if (recordings_.size() < kMost) recordings_.push_back({key, nullptr});
    return work();
  }
  if (found->graph == nullptr) {
    device_.begin_recording(stream_);
    try {
      work();
    } catch (...) {
      device_.abandon_recording(stream_);
      throw;
    }
    found->graph = device_.end_recording(stream_);
  }
  device_.launch(found->graph, stream_);
}

}  // namespace lockstep
