// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// Which activations are computed once more for the backward pass instead of being kept (recomputation.h).
enum class Recompute {
  marked,     ///< those of the segments that layers name
  automatic,  ///< those of the segments that need the least memory
  none,
};

}  // namespace lockstep
