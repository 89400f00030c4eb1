// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which checkpoint of a run directory is used: the words that stand for a file wherever an option or a member
// takes a checkpoint.
//
//   last    the newest intact one; so it is where nothing is said
//   best    the best of those that checkpoint.keep_best keeps
//   2500    the one of step 2500
//
// One process, no communication; session/run_state.h finds a checkpoint for all ranks.
#pragma once

#include <string>
#include <string_view>

#include "io/checkpoint.h"

namespace lockstep {

inline constexpr std::string_view kLastCheckpoint = "last", kBestCheckpoint = "best";

/// "last", "best" or a whole number. A file of such a name is ./last, ./best or ./2500.
bool is_checkpoint_word(std::string_view text);

/// The best checkpoint of a run directory: the one that its state file names, or, where an older version has
/// written it, the best by the metrics there. Throws Error(checkpoint) if no checkpoint has a metric.
std::string best_checkpoint(const std::string& run_dir);

/// The checkpoint that a word other than "last" names, or `word` itself, a file. Throws Error(checkpoint) if
/// the run has none of the step.
std::string named_checkpoint(const std::string& run_dir, const std::string& word);

/// The same file, open and verified. The best one is looked for again if training removes it meanwhile; a
/// checkpoint of a step, and a file, are errors then.
CheckpointFile open_named_checkpoint(const std::string& run_dir, const std::string& word);

/// Opens the file `target` itself, or the checkpoint of the run directory `target` that the word names, with
/// every byte verified; empty: the last. Warns about damaged ones before it. The last and the best one are
/// looked for again if training removes them meanwhile. Throws Error(checkpoint) if there is none, and
/// Error(usage) for a word and a file.
CheckpointFile open_chosen_checkpoint(const std::string& target, std::string_view word);

}  // namespace lockstep
