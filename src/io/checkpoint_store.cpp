// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "core/log.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "checkpoints";
constexpr std::string_view kStateFile = "checkpoint";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".h5";

/// The step in a name like "checkpoints/step-00000200.h5".
std::optional<std::int64_t> step_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size() - kSuffix.size();
  std::int64_t step = 0;
  const auto [rest, code] = std::from_chars(begin, end, step);
  if (begin >= end || code != std::errc() || rest != end || step < 0) return std::nullopt;
  return step;
}

struct Saved {
  std::int64_t step;
  std::string path;
};

/// What lies in the folder, oldest step first.
std::vector<Saved> list_folder(const std::string& run_dir) {
  std::vector<Saved> found;
  std::error_code code;
  const fs::path folder = fs::path(run_dir) / kFolder;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (const auto step = step_of(at->path().string())) found.push_back({*step, at->path().string()});
  std::sort(found.begin(), found.end(), [](const Saved& a, const Saved& b) { return a.step < b.step; });
  return found;
}

/// The value of model_checkpoint_path in the state file; nullopt if there is none or it cannot be read.
std::optional<std::string> recorded_newest(const std::string& run_dir) {
  std::string text;
  try {
    text = read_whole_file((fs::path(run_dir) / kStateFile).string(), ErrorKind::checkpoint);
  } catch (const Error&) {
    return std::nullopt;
  }
  constexpr std::string_view kKey = "model_checkpoint_path:";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with(kKey)) continue;
    const std::size_t open = line.find('"');
    const std::size_t close = line.rfind('"');
    if (open == std::string_view::npos || close <= open + 1) return std::nullopt;
    const fs::path path(line.substr(open + 1, close - open - 1));
    return (path.is_absolute() ? path : fs::path(run_dir) / path).string();
  }
  return std::nullopt;
}

void write_state(const std::string& run_dir, const std::string& newest, std::span<const Saved> kept) {
  const auto line = [&](std::string_view key, const std::string& path) {
    return fmt::format("{}: \"{}/{}\"\n", key, kFolder, fs::path(path).filename().string());
  };
  std::string text = line("model_checkpoint_path", newest);
  for (const Saved& saved : kept) text += line("all_model_checkpoint_paths", saved.path);
  write_file_atomically((fs::path(run_dir) / kStateFile).string(), text, ErrorKind::checkpoint);
}

}  // namespace

CheckpointStore::CheckpointStore(std::string run_dir, int keep) : run_dir_(std::move(run_dir)), keep_(keep) {
  LOCKSTEP_REQUIRE(keep >= 0, ErrorKind::config, "checkpoint.keep is {}; it is a number of files, 0 for all",
                   keep);
}

std::string CheckpointStore::path_of(std::int64_t global_step) const {
  return (fs::path(run_dir_) / kFolder / fmt::format("{}{:08}{}", kPrefix, global_step, kSuffix)).string();
}

std::string CheckpointStore::save(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors) {
  const fs::path folder = fs::path(run_dir_) / kFolder;
  std::error_code code;
  if (fs::create_directories(folder, code)) flush_folder(run_dir_, ErrorKind::checkpoint);
  if (code)
    throw Error(ErrorKind::checkpoint, "cannot create the folder: " + code.message(), folder.string(),
                "Check the permissions of the run directory.");
  const std::string path = path_of(header.global_step);
  write_checkpoint(path, header, tensors);

  // Later steps belong to a run that was set back: they count as the oldest.
  std::vector<Saved> all = list_folder(run_dir_);
  std::stable_partition(all.begin(), all.end(),
                        [&](const Saved& saved) { return saved.step > header.global_step; });
  const std::size_t surplus = keep_ > 0 && all.size() > static_cast<std::size_t>(keep_)
                                  ? all.size() - static_cast<std::size_t>(keep_)
                                  : 0;
  write_state(run_dir_, path, std::span(all).subspan(surplus));
  for (const Saved& old : std::span(all).first(surplus))
    if (!fs::remove(old.path, code) && code)
      log_warning("{}: cannot remove this old checkpoint: {}", old.path, code.message());
  return path;
}

std::optional<std::string> CheckpointStore::newest_intact(std::vector<std::string>* damaged) const {
  std::vector<std::string> candidates;
  std::optional<std::int64_t> below;
  const std::optional<std::string> recorded = recorded_newest(run_dir_);
  if (recorded) {
    candidates.push_back(*recorded);
    below = step_of(*recorded);
  }
  const std::vector<Saved> all = list_folder(run_dir_);
  for (auto saved = all.rbegin(); saved != all.rend(); ++saved)
    if (saved->path != recorded && (!below || saved->step < *below)) candidates.push_back(saved->path);
  for (const std::string& path : candidates) {
    try {
      CheckpointFile(path).verify();
      return path;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::checkpoint) throw;
      if (damaged != nullptr) damaged->push_back(fmt::format("{}: {}", error.where(), error.what_happened()));
    }
  }
  return std::nullopt;
}

void CheckpointStore::clean() {
  for (const fs::path& folder : {fs::path(run_dir_), fs::path(run_dir_) / kFolder}) {
    std::vector<fs::path> leftovers;
    std::error_code code;
    for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
      if (is_temporary_name(at->path().filename().string())) leftovers.push_back(at->path());
    for (const fs::path& path : leftovers)
      if (!fs::remove(path, code) && code)
        log_warning("{}: cannot remove what a killed run left: {}", path.string(), code.message());
  }
}

std::optional<std::int64_t> newest_checkpoint_step(const std::string& run_dir) {
  const std::optional<std::string> recorded = recorded_newest(run_dir);
  return recorded ? step_of(*recorded) : std::nullopt;
}

}  // namespace lockstep
