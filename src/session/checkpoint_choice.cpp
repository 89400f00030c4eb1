// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoint_choice.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "config/yaml_node.h"
#include "core/name_list.h"
#include "core/scalar.h"
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

/// Of a word that is a whole number.
std::optional<std::int64_t> step_of(std::string_view word) {
  const bool digits = !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? parse_integer(word) : std::nullopt;
}

std::string checkpoint_of_step(const std::string& run_dir, std::int64_t step) {
  const CheckpointStore store(run_dir, 0);
  const std::string path = store.path_of(step);
  std::error_code code;
  if (std::filesystem::exists(path, code)) return path;
  std::vector<std::string> steps;
  for (const KeptCheckpoint& one : store.list()) steps.push_back(std::to_string(one.step));
  throw Error(
      ErrorKind::checkpoint, fmt::format("has no checkpoint of step {}", step), run_dir,
      steps.empty() ? "It has none at all." : fmt::format("It has those of step {}.", name_list(steps)));
}

}  // namespace

bool is_checkpoint_word(std::string_view text) {
  return text == kLastCheckpoint || text == kBestCheckpoint || step_of(text);
}

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

std::string named_checkpoint(const std::string& run_dir, const std::string& word) {
  if (word == kBestCheckpoint) return best_checkpoint(run_dir);
  if (const auto step = step_of(word)) return checkpoint_of_step(run_dir, *step);
  return word;
}

CheckpointFile open_named_checkpoint(const std::string& run_dir, const std::string& word) {
  for (int looks = 1;; ++looks) {
    const std::string path = named_checkpoint(run_dir, word);
    fault_replaced_checkpoint(run_dir, path);
    try {
      CheckpointFile file(path);
      file.verify();
      return file;
    } catch (const Error& error) {
      std::error_code code;
      const bool gone = error.kind() == ErrorKind::checkpoint && !std::filesystem::exists(path, code);
      if (word != kBestCheckpoint || !gone || looks == kMostLooks) throw;
    }
  }
}

CheckpointFile open_chosen_checkpoint(const std::string& target, std::string_view word) {
  if (word.empty() || word == kLastCheckpoint) return open_checkpoint_at(target);
  std::error_code code;
  if (!std::filesystem::is_directory(target, code))
    throw Error(ErrorKind::usage,
                word == kBestCheckpoint
                    ? "the best checkpoint is asked for, and this is a file"
                    : fmt::format("the checkpoint of step {} is asked for, and this is a file", word),
                target, "Give the run directory, or leave --checkpoint out.");
  return open_named_checkpoint(target, std::string(word));
}

}  // namespace lockstep
