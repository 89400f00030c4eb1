// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/export_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "config/yaml_node.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "io/checkpoint_store.h"
#include "io/checkpoint_tools.h"
#include "run/sections/configuration_file.h"
#include "run/setup/evaluation_settings.h"
#include "session/state_settings.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// The exports in a folder, in step order.
std::vector<fs::path> exports_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
    if (entry.path().filename().string().starts_with("step-")) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// The file `best`: the best value so far, and what it depends on.
struct Best {
  double value = 0;
  StatePieces depends = {};
};
constexpr const char* kBestValue = "value";

std::optional<Best> best_so_far(const fs::path& folder) {
  std::error_code failed;
  const std::string path = (folder / "best").string();
  if (!fs::exists(path, failed)) return std::nullopt;
  const std::string text = read_whole_file(path, ErrorKind::checkpoint);
  Best best;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), best.value);
  if (code != std::errc()) return std::nullopt;
  const std::string_view rest(end, text.data() + text.size());
  const std::size_t begin = rest.find('{');
  if (begin == std::string_view::npos) return best;
  try {
    best.depends = StatePieces::parse(rest.substr(begin), path);
  } catch (const Error& error) {
    log_warning("{}; the best value is begun anew", message_of(error));
    return std::nullopt;
  }
  return best;
}

/// What the best value of a strategy depends on.
StatePiece depends_of(const ExportStrategy& strategy, Direction better, const std::string& checkpoint) {
  Node root = parse_yaml(CheckpointFile(checkpoint).header().config, checkpoint);
  replace_variables(root);
  const Node* const base = root.find("base_directory");
  StatePiece piece{.name = kBestValue,
                   .settings = {{"metric", strategy.metric}, {"better", std::string(name_of(better))}}};
  std::ranges::move(evaluation_settings(root, base != nullptr ? base->text : "", strategy.metric),
                    std::back_inserter(piece.settings));
  return piece;
}

/// Whether the value is better than all before it that it compares with.
bool is_better(double value, Direction better, const StatePiece& depends, const fs::path& folder) {
  if (std::isnan(value)) return false;  // no sample counts for it, or the run has diverged
  const std::optional<Best> best = best_so_far(folder);
  if (!best) return true;
  const StatePiece* const before = best->depends.find(kBestValue);
  if (const std::string changed = before != nullptr ? differences(before->settings, depends.settings) : "";
      !changed.empty()) {
    log_info("{}: the best value is begun anew: {}", folder.string(), changed);
    return true;
  }
  return better == Direction::max ? value > best->value : value < best->value;
}

void write_best(double value, const StatePiece& depends, const fs::path& folder) {
  StatePieces pieces;
  pieces.add(depends);
  write_file_atomically((folder / "best").string(), fmt::format("{}\n{}\n", value, pieces.text()));
}

void remove_old(const fs::path& folder, int keep) {
  const std::vector<fs::path> all = exports_in(folder);
  for (std::size_t i = 0; keep > 0 && i + static_cast<std::size_t>(keep) < all.size(); ++i) {
    std::error_code failed;
    fs::remove_all(all[i], failed);
    if (failed) log_warning("the old export {} cannot be removed: {}", all[i].string(), failed.message());
  }
}

Error cannot(const std::string& what, const fs::path& where, const std::error_code& failed) {
  return Error(ErrorKind::output, fmt::format("{}: {}", what, failed.message()), where.string(),
               "Check the rights and the space of the run directory.");
}

/// What a run directory keeps of its data (session/run_vocabulary.h and its neighbours).
bool is_kept_of_data(const std::string& name) {
  for (const char* const exact : {"classes.txt", "categories.txt", "vocabulary.txt", "tokenizer.json"})
    if (name == exact) return true;
  const bool is_normalization = name.starts_with("normalization");
  return ((is_normalization || name.starts_with("class_counts")) && name.ends_with(".txt")) ||
         ((is_normalization || name.starts_with("whitening")) && name.ends_with(".npy"));
}

void fill(const fs::path& folder, const std::string& run_dir, const CheckpointFile& checkpoint,
          bool averages) {
  constexpr const char* kWeights = "weights.h5";
  export_weights(checkpoint, NamePatterns(std::vector<std::string>()), NameRules(),
                 (folder / kWeights).string(), averages);
  write_file_atomically((folder / "config.yaml").string(), checkpoint.header().config);
  write_file_atomically((folder / "checkpoint").string(),
                        fmt::format("model_checkpoint_path: \"{}\"\n", kWeights));
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_dir, failed)) {
    const std::string name = entry.path().filename().string();
    if (is_kept_of_data(name))
      write_file_atomically((folder / name).string(),
                            read_whole_file(entry.path().string(), ErrorKind::data));
  }
}

/// Throws Error(config) if the strategy says the opposite of the metric, or neither says anything.
Direction better_of(const ExportStrategy& strategy) {
  return resolve({.given = strategy.given_direction(),
                  .metric = strategy.metric,
                  .option = "the mode of the export",
                  .where = "export " + strategy.name},
                 direction_of(strategy.metric, {}));
}

}  // namespace

std::string export_path(const std::string& folder, std::int64_t global_step) {
  return (fs::path(folder) / fmt::format("step-{:08}", global_step)).string();
}

std::string export_checkpoint(const std::string& run_dir, const std::string& folder,
                              const CheckpointFile& file, bool averages) {
  const fs::path place = export_path(folder, file.header().global_step);
  const fs::path temporary = fs::path(folder) / fmt::format(".{}.tmp", place.filename().string());
  std::error_code failed;
  fs::remove_all(temporary, failed);  // of a killed job
  fs::create_directories(temporary, failed);
  if (failed) throw cannot("the export cannot be made", temporary, failed);
  fill(temporary, run_dir, file, averages);
  if (fs::exists(place, failed)) {
    const auto digest = [](const fs::path& of) {
      return CheckpointFile((of / "weights.h5").string()).header().digest;
    };
    const bool same = digest(place) == digest(temporary);
    fs::remove_all(temporary, failed);
    if (same) return place.string();
    throw Error(ErrorKind::output, "there is an export of this step already, with other weights",
                place.string(), "Remove it, or export to another folder.");
  }
  fs::rename(temporary, place, failed);
  if (failed) throw cannot("the export cannot be named", place, failed);
  flush_folder(folder, ErrorKind::output);
  return place.string();
}

std::vector<std::string> export_here(const std::string& run_dir,
                                     const std::vector<ExportStrategy>& strategies,
                                     const EvaluationOutcome& evaluation, bool is_final) {
  std::vector<std::string> made;
  for (const ExportStrategy& strategy : strategies) {
    if (strategy.when == ExportStrategy::When::final && !is_final) continue;
    const bool is_best = strategy.when == ExportStrategy::When::best;
    const double value = is_best ? evaluation.value(strategy.metric) : 0;
    const fs::path folder = make_run_folder(run_dir, "export/" + strategy.name, ErrorKind::output);
    const Direction better = is_best ? better_of(strategy) : Direction::none;
    const StatePiece depends = is_best ? depends_of(strategy, better, evaluation.checkpoint) : StatePiece{};
    if (is_best && !is_better(value, better, depends, folder)) continue;
    const fs::path place = export_path(folder.string(), evaluation.global_step);
    if (std::error_code failed; !fs::exists(place, failed)) {
      const auto file = evaluation.file != nullptr
                            ? evaluation.file
                            : std::make_shared<const CheckpointFile>(evaluation.checkpoint);
      made.push_back(export_checkpoint(run_dir, folder.string(), *file, true));
    }
    if (is_best) write_best(value, depends, folder);
    remove_old(folder, strategy.keep);
  }
  return made;
}

std::vector<std::string> export_evaluated(Communicator& world, const std::string& run_dir,
                                          const std::vector<ExportStrategy>& strategies,
                                          const EvaluationOutcome& evaluation, bool is_final) {
  std::vector<std::string> made;
  shared([&] {
    agree(
        world,
        [&] {
          // On all ranks, so that a metric that does not exist is an error of all.
          for (const ExportStrategy& strategy : strategies)
            if (strategy.when == ExportStrategy::When::best) {
              evaluation.value(strategy.metric);
              better_of(strategy);
            }
          if (world.rank() == 0) made = export_here(run_dir, strategies, evaluation, is_final);
        },
        "exporting a checkpoint");
  });
  return made;
}

}  // namespace lockstep
