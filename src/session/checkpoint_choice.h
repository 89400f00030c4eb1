// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which checkpoint of a run directory is used: the words that stand for a file wherever an option or a member
// takes a checkpoint.
//
//   last    the newest intact one; so it is where nothing is said
//   best    the best of those that checkpoint.keep_best keeps
//
// One process, no communication; session/run_state.h finds a checkpoint for all ranks.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

inline constexpr std::string_view kLastCheckpoint = "last", kBestCheckpoint = "best";

/// "last" or "best". A file of such a name is ./last or ./best.
bool is_checkpoint_word(std::string_view text);

/// The best checkpoint of a run directory: the one that its state file names, or, where an older version has
/// written it, the best by the metrics there. Throws Error(checkpoint) if no checkpoint has a metric.
std::string best_checkpoint(const std::string& run_dir);

/// The file `target` itself, or the checkpoint of the run directory `target` that the word names, with every
/// byte verified; empty: the last. Warns about damaged ones before it. Throws Error(checkpoint) if there is
/// none, and Error(usage) for the best of a file.
std::string chosen_checkpoint(const std::string& target, std::string_view word);

}  // namespace lockstep
