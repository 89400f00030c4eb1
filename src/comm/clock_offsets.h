// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How far the steady clocks of the ranks are apart, measured by messages: rank 0 asks each other rank for its
// time, several times, and believes the fastest answer. The answer was given at the middle of the exchange,
// give or take half of it (Cristian, "Probabilistic clock synchronization", 1989).
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

struct ClockOffset {
  std::int64_t offset_ns = 0;  ///< what a rank's clock shows when rank 0's shows 0
  std::int64_t error_ns = 0;   ///< at most so far off
};

/// All ranks. By rank on rank 0; empty on the others. Rank 0 asks one rank after the other, at least 20
/// times, and more often until the error is below 50 us.
std::vector<ClockOffset> measure_clocks(Communicator& group);

}  // namespace lockstep
