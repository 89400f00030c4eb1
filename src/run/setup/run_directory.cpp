// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_directory.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "data/sample_description.h"
#include "io/checkpoint_store.h"
#include "session/checkpoint_choice.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndings[] = {".h5", ".hdf5"};

RunTarget resolved(const std::string& target, const std::string& run_dir,
                   std::span<const std::string> overrides) {
  std::error_code code;
  if (!fs::is_directory(target, code))
    return {load_config(target, overrides), run_dir.empty() ? default_run_directory(target) : run_dir};
  const std::string config = (fs::path(target) / "config.yaml").string();
  if (!fs::exists(config, code))
    if (const auto newest = CheckpointStore(target, 0).open_newest_intact(nullptr))
      return {config_in(newest->header().config, newest->path(), overrides), target};
  if (!fs::is_regular_file(config, code))  // to open a FIFO could wait for ever
    throw Error(ErrorKind::config, "this is no run directory: it has no config.yaml", target,
                "Give the folder that `lockstep train` wrote (runs/NAME), or a configuration file.");
  return {load_config(config, overrides), target};
}

}  // namespace

Config config_in(const std::string& text, const std::string& checkpoint,
                 std::span<const std::string> overrides) {
  if (text.empty())
    throw Error(ErrorKind::checkpoint, "has no configuration", checkpoint,
                "Give a configuration file, and --checkpoint with this file.");
  return config_from_text(text, checkpoint, overrides);
}

std::string run_directory_of(const std::string& checkpoint) {
  fs::path parent = fs::path(checkpoint).parent_path();
  if (parent.filename() == "checkpoints") parent = parent.parent_path();
  return parent.empty() ? std::string(".") : parent.string();
}

RunTarget resolve_target(const RunArguments& arguments) {
  std::error_code code;
  const std::string ending = fs::path(arguments.target).extension().string();
  if (std::ranges::find(kEndings, ending) == std::end(kEndings) ||
      !fs::is_regular_file(arguments.target, code))
    return resolved(arguments.target, arguments.run_dir, arguments.overrides);
  if (!arguments.checkpoint.empty())
    throw Error(ErrorKind::usage, "a checkpoint is given, and --checkpoint as well", arguments.target,
                "Name the run directory, or one of the checkpoints.");
  const CheckpointFile file(arguments.target);
  return {config_in(file.header().config, file.path(), arguments.overrides),
          arguments.run_dir.empty() ? run_directory_of(arguments.target) : arguments.run_dir,
          arguments.target};
}

RunTarget resolve_target(const TrainArguments& arguments) {
  std::error_code code;
  if (!arguments.run_dir.empty() && fs::is_directory(arguments.target, code))
    throw Error(ErrorKind::usage, "train: a run directory is given, and --run-dir as well", arguments.target,
                "A run directory continues in itself. To begin another run like it, give its config.yaml.");
  return resolved(arguments.target, arguments.run_dir, arguments.overrides);
}

void refuse_without_effect(std::span<const std::string> overrides, bool predicts) {
  constexpr std::string_view kOfWords[] = {
      "tokens",          "lower_case",      "min_count",        "max_vocabulary", "vocabulary",
      "vocabulary_rows", "vocabulary_part", "vocabulary_split", "merges",         "padding_token"};
  for (const std::string& assignment : overrides) {
    const std::string_view path = std::string_view(assignment).substr(0, assignment.find('='));
    if (!path.starts_with("data.")) continue;
    const std::string_view key = path.substr(path.rfind('.') + 1);
    const bool of_words = std::ranges::find(kOfWords, key) != std::end(kOfWords);
    if (!of_words && !(predicts && key == "path")) continue;
    throw Error(ErrorKind::usage,
                fmt::format("{} has no effect: {}", path,
                            of_words ? "the words are those of the checkpoint"
                                     : "the samples come from --input, and their form from the checkpoint"),
                "--set " + assignment, "Leave it out.");
  }
}

bool describes_samples(const std::string& run_dir, const std::string& checkpoint) {
  const auto describes = [](const CheckpointFile& file) {
    const auto& kept = file.header().kept;
    return kept != nullptr && kept->contains(kSampleDescription);
  };
  const CheckpointStore store(run_dir, 0);
  try {
    if (!checkpoint.empty() && checkpoint != kLastCheckpoint)
      return describes(CheckpointFile(named_checkpoint(run_dir, checkpoint)));
    try {
      const std::optional<CheckpointFile> newest = store.open_newest();
      return newest && describes(*newest);
    } catch (const Error&) {  // a damaged one
      const std::optional<CheckpointFile> newest = store.open_newest_intact(nullptr);
      return newest && describes(*newest);
    }
  } catch (const Error&) {
    return false;
  }
}

}  // namespace lockstep
