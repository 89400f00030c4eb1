// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a run directory, as `checkpoint list` and `report` show them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint_retention.h"

namespace lockstep {

struct CheckpointRow {
  KeptCheckpoint kept;
  std::optional<std::int64_t> epoch;  // finished ones; of files whose header can be read
  bool inside = false;                // some samples of the next one are consumed
  std::uintmax_t bytes = 0;
  std::string damage;  ///< empty: none that was looked for
};

/// The checkpoints in step order, with the reasons for keeping them. Throws Error(checkpoint) if there is
/// none.
std::vector<KeptCheckpoint> checkpoints_of(const std::string& run_dir);
/// `verify`: read every byte; otherwise the header.
CheckpointRow checkpoint_row(const KeptCheckpoint& kept, bool verify);
/// "recent, best".
std::string why_kept(const KeptCheckpoint& kept);
/// What is wrong with a file; empty if every byte is right.
std::string checkpoint_damage(const std::string& path);
/// "DAMAGED", or "UNREADABLE" for a file without permission, which may be intact.
const char* fault_word(const std::string& path);
/// "2026-01-31T23:59:59Z".
std::string utc_text(double seconds);

}  // namespace lockstep
