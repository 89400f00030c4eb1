// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "train/server_layout.h"

namespace lockstep {

/// How servers and workers share the steps (section `cluster`, docs/cluster.md).
struct ServerTrainingOptions {
  ServerLayout layout;
  int staleness = 0;
  std::int64_t meet_every_steps = 1;
  std::optional<int> aggregate;
  std::int64_t last_step = 0;  ///< of the run; the last round ends there
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  /// The first step of this worker: it takes no parts in rounds that begin before.
  std::int64_t first_step = 0;
};

}  // namespace lockstep
