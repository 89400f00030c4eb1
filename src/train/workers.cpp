// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/workers.h"

#include "core/error.h"
#include "kernels/openmp_threads.h"
#include "train/branches.h"

namespace lockstep {

Workers::Workers(int threads, Device& device)
    : device_(device),
      openmp_(std::make_unique<OneOpenMpThread>()),
      pool_(threads),
      lanes_(static_cast<std::size_t>(device.is_host() ? threads : kMostBranches)),
      scratch_(lanes_.size()) {
  LOCKSTEP_CHECK(device.is_host() || threads == 1, "{} threads fill the streams of {}", threads,
                 device.name());
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    streams_.push_back(std::make_unique<DeviceStream>(device));
    lanes_[i].index = static_cast<int>(i);
    lanes_[i].stream = streams_.back()->get();
  }
}

Workers::~Workers() = default;

void Workers::grow_scratch(std::size_t bytes, std::optional<int> lanes) {
  const auto count = static_cast<std::size_t>(lanes.value_or(pool_.size()));
  for (std::size_t i = 0; i < count; ++i) {
    if (lanes_[i].scratch_bytes >= bytes) continue;
    scratch_[i] = {};
    scratch_[i] = Buffer(device_, bytes);
    lanes_[i].scratch = scratch_[i].data();
    lanes_[i].scratch_bytes = bytes;
  }
}

std::size_t Workers::scratch_bytes() const {
  std::size_t sum = 0;
  for (const Buffer& buffer : scratch_) sum += buffer.size_bytes();
  return sum;
}

}  // namespace lockstep
