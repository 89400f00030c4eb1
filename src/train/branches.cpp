// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/branches.h"

#include <algorithm>

namespace lockstep {

int choose_branches(std::int64_t microshards, std::size_t bytes, std::optional<int> wanted) {
  const std::int64_t most = std::clamp<std::int64_t>(microshards, 1, kMostBranches);
  if (wanted) return static_cast<int>(std::min<std::int64_t>(*wanted, most));
  const std::int64_t fit =
      bytes == 0 ? most : std::min(most, 1 + static_cast<std::int64_t>(kBranchesBytes / bytes));
  const std::int64_t rounds = (microshards + fit - 1) / fit;
  return rounds == 0 ? 1 : static_cast<int>((microshards + rounds - 1) / rounds);
}

Branches::Branches(Device& device, std::span<const Lane> lanes) : lanes_(lanes), forked_(device) {
  for (std::size_t i = 1; i < lanes.size(); ++i) done_.emplace_back(device);
}

void Branches::fork() const {
  if (done_.empty()) return;
  forked_.record(lanes_.front().stream);
  for (const Lane& lane : lanes_.subspan(1)) forked_.stream_wait(lane.stream);
}

void Branches::join() const {
  for (std::size_t i = 0; i < done_.size(); ++i) {
    done_[i].record(lanes_[i + 1].stream);
    done_[i].stream_wait(lanes_.front().stream);
  }
}

}  // namespace lockstep
