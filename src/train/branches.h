// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The branches of a training step on a device. A rank's microshards do not depend on each other until sums
// are taken over them, and a small one leaves most of a GPU idle. So each branch is a lane whose stream has
// the work of some of the microshards, and the streams run side by side. The first branch is the lane of
// everything else: the others begin where it has arrived, and it goes on when they are done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "core/device.h"
#include "kernels/lane.h"

namespace lockstep {

/// The most branches of a rank.
inline constexpr int kMostBranches = 8;
/// What the branches after the first may take of a device's memory together, unless their number is given.
inline constexpr std::size_t kBranchesBytes = std::size_t{1} << 30;

/// The number of branches for a rank's `microshards`, at most one for each. `wanted` if it is given; else as
/// many as find room in kBranchesBytes, at `bytes` for each after the first, and no more than end in the same
/// number of rounds. Nothing else decides it, so a run takes the same memory each time.
int choose_branches(std::int64_t microshards, std::size_t bytes, std::optional<int> wanted);

class Branches {
 public:
  /// `lanes`: one per branch, of `device`; both outlive it. One lane needs neither fork() nor join(), which
  /// then do nothing. So on the CPU.
  Branches(Device& device, std::span<const Lane> lanes);

  /// Work that enters the other lanes' streams from now on follows what is in the first one's.
  void fork() const;
  /// Work that enters the first lane's stream from now on follows what is in those of all lanes.
  void join() const;

 private:
  std::span<const Lane> lanes_;
  DeviceEvent forked_;
  std::deque<DeviceEvent> done_;  ///< by lane after the first
};

}  // namespace lockstep
