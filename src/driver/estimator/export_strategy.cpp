// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/estimator/export_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/log.h"
#include "io/atomic_file.h"
#include "io/checkpoint_tools.h"

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

std::optional<double> best_so_far(const fs::path& folder) {
  std::error_code failed;
  if (!fs::exists(folder / "best", failed)) return std::nullopt;
  const std::string text = read_whole_file((folder / "best").string(), ErrorKind::checkpoint);
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
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

/// On the chief. Empty: it is there already.
std::string write_export(const fs::path& folder, const EvaluationOutcome& evaluation) {
  const fs::path place = folder / fmt::format("step-{:08}", evaluation.global_step);
  std::error_code failed;
  if (fs::exists(place, failed)) return "";
  const fs::path temporary = folder / fmt::format(".step-{:08}.tmp", evaluation.global_step);
  fs::remove_all(temporary, failed);  // of a killed job
  fs::create_directories(temporary, failed);
  if (failed) throw cannot("the export cannot be made", temporary, failed);
  const CheckpointFile checkpoint(evaluation.checkpoint);
  export_weights(checkpoint, NamePatterns(std::vector<std::string>()), NameRules(),
                 (temporary / "weights.h5").string());
  write_file_atomically((temporary / "config.yaml").string(), checkpoint.header().config);
  fs::rename(temporary, place, failed);
  if (failed) throw cannot("the export cannot be named", place, failed);
  flush_folder(folder.string(), ErrorKind::output);
  return place.string();
}

}  // namespace

bool is_export_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && std::ranges::all_of(name, allowed);
}

std::vector<std::string> export_evaluated(Communicator& world, const std::string& run_dir,
                                          const std::vector<ExportStrategy>& strategies,
                                          const EvaluationOutcome& evaluation, bool is_final) {
  std::vector<std::string> made;
  shared([&] {
    agree(
        world,
        [&] {
          for (const ExportStrategy& strategy : strategies) {
            // On all ranks, so that a metric that does not exist is an error of all.
            const bool is_best = strategy.when == ExportStrategy::When::best;
            const double value = is_best ? evaluation.value(strategy.metric) : 0;
            if (world.rank() != 0) continue;
            if (strategy.when == ExportStrategy::When::final && !is_final) continue;
            const fs::path folder = fs::path(run_dir) / "export" / strategy.name;
            if (is_best) {
              const std::optional<double> best = best_so_far(folder);
              if (best && !(strategy.larger_is_better ? value > *best : value < *best)) continue;
            }
            if (std::string path = write_export(folder, evaluation); !path.empty()) made.push_back(path);
            if (is_best) write_file_atomically((folder / "best").string(), fmt::format("{}\n", value));
            remove_old(folder, strategy.keep);
          }
        },
        "exporting a checkpoint");
  });
  return made;
}

}  // namespace lockstep
