// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/run/checkpoint_rows.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/checkpoint_store.h"
#include "run/sections/config.h"
#include "session/saver.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// The rules of the run, so that "why is it kept" has the run's own answer; the defaults if it has no
/// readable configuration.
RetentionRules rules_of(const std::string& run_dir) {
  const std::string path = (fs::path(run_dir) / "config.yaml").string();
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return {};
  try {
    return load_config(path).checkpoint.saver.retention;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<KeptCheckpoint> checkpoints_of(const std::string& run_dir) {
  std::vector<KeptCheckpoint> all = CheckpointStore(run_dir, rules_of(run_dir)).list();
  if (all.empty())
    throw Error(ErrorKind::checkpoint, "holds no checkpoint", run_dir, "Give a run directory.");
  return all;
}

std::string why_kept(const KeptCheckpoint& kept) {
  std::string why;
  for (const auto& [holds, word] : {std::pair{kept.recent, "recent"}, std::pair{kept.best, "best"},
                                    std::pair{kept.preserved, "for good"}})
    if (holds) why += (why.empty() ? "" : ", ") + std::string(word);
  return why.empty() ? "goes with the next" : why;
}

std::string utc_text(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string checkpoint_damage(const std::string& path) {
  try {
    CheckpointFile(path).verify();
    return {};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::checkpoint) throw;
    return fmt::format("{}: {}", error.where(), error.what_happened());
  }
}

const char* fault_word(const std::string& path) {
  return unreadable_reason(path).empty() ? "DAMAGED" : "UNREADABLE";
}

CheckpointRow checkpoint_row(const KeptCheckpoint& kept, bool verify) {
  CheckpointRow row{.kept = kept};
  std::error_code code;
  row.bytes = fs::file_size(kept.path, code);
  if (code) row.bytes = 0;
  try {
    const CheckpointHeader header = CheckpointFile(kept.path).header();
    row.epoch = header.epoch;
    row.inside = header.samples_consumed > 0;
  } catch (const Error& error) {
    row.damage = error.what_happened();
  }
  if (verify) row.damage = checkpoint_damage(kept.path);
  return row;
}

}  // namespace lockstep
