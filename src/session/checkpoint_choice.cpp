// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoint_choice.h"

#include <filesystem>

#include "config/yaml_node.h"
#include "io/checkpoint_store.h"
#include "io/checkpoint_tools.h"
#include "model/direction.h"

namespace lockstep {

namespace {

/// What the configuration of a run compares checkpoints by: the direction of its metric, which an older
/// version did not ask for, else that of its option.
Direction direction_in(const std::string& checkpoint) {
  const Node config = parse_yaml(CheckpointFile(checkpoint).header().config, checkpoint);
  const Node* const section = config.find("checkpoint");
  const auto text = [&](const char* key) {
    const Node* const value = section != nullptr ? section->find(key) : nullptr;
    return value != nullptr ? value->text : std::string();
  };
  const std::string metric = text("best_metric");
  if (const Direction own = direction_of(metric, {}); own != Direction::none) return own;
  return direction_from(text("best_mode"));
}

}  // namespace

bool is_checkpoint_word(std::string_view text) { return text == kLastCheckpoint || text == kBestCheckpoint; }

std::string best_checkpoint(const std::string& run_dir) {
  const CheckpointStore store(run_dir, 0);
  if (const auto recorded = store.recorded_best()) return recorded->path;
  const std::vector<KeptCheckpoint> all = store.list();
  if (!all.empty())
    if (const KeptCheckpoint* const best = best_of(all, direction_in(all.back().path) == Direction::max))
      return best->path;
  throw Error(ErrorKind::checkpoint, "no checkpoint has a metric: none is known as the best", run_dir,
              "Use the last one, or train with checkpoint.keep_best: 1 and an evaluation set.");
}

std::string chosen_checkpoint(const std::string& target, std::string_view word) {
  if (word != kBestCheckpoint) return checkpoint_at(target);
  std::error_code code;
  if (!std::filesystem::is_directory(target, code))
    throw Error(ErrorKind::usage, "the best checkpoint is asked for, and this is a file", target,
                "Give the run directory, or leave --checkpoint out.");
  const std::string path = best_checkpoint(target);
  CheckpointFile(path).verify();
  return path;
}

}  // namespace lockstep
