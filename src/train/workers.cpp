// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/workers.h"

namespace lockstep {

Workers::Workers(int threads, Device& device)
    : device_(device), pool_(threads), lanes_(static_cast<std::size_t>(threads)) {
  for (int i = 0; i < threads; ++i) {
    streams_.push_back(std::make_unique<DeviceStream>(device));
    lanes_[static_cast<std::size_t>(i)].index = i;
    lanes_[static_cast<std::size_t>(i)].stream = streams_.back()->get();
  }
}

void Workers::grow_scratch(std::size_t bytes) {
  if (!lanes_.empty() && lanes_.front().scratch_bytes >= bytes) return;
  scratch_.clear();
  for (Lane& lane : lanes_) {
    scratch_.emplace_back(device_, bytes);
    lane.scratch = scratch_.back().data();
    lane.scratch_bytes = bytes;
  }
}

std::size_t Workers::scratch_bytes() const {
  std::size_t sum = 0;
  for (const Buffer& buffer : scratch_) sum += buffer.size_bytes();
  return sum;
}

}  // namespace lockstep
