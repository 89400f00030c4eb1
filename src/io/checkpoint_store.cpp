// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>

#include "core/fault.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "io/atomic_file.h"
#include "io/checkpoint_state.h"
#include "io/file_descriptor.h"

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

std::string state_path(const std::string& run_dir) { return (fs::path(run_dir) / kStateFile).string(); }

/// Reads the state file; returns an empty state if it is not readable.
CheckpointState read_state(const std::string& run_dir) {
  try {
    return parse_checkpoint_state(read_whole_file(state_path(run_dir), ErrorKind::checkpoint));
  } catch (const Error&) {
    return {};
  }
}

/// Checkpoints that lie in the run directory itself, those of later steps first: somebody has copied them.
std::vector<std::string> copied_into(const std::string& run_dir) {
  std::vector<std::string> found;
  std::error_code code;
  for (fs::directory_iterator at(run_dir, code), end; !code && at != end; at.increment(code))
    if (step_of(at->path().string())) found.push_back(at->path().string());
  std::ranges::sort(found, std::ranges::greater{},
                    [](const std::string& path) { return step_of(path).value(); });
  return found;
}

/// The path as written in the state file.
std::string relative(const std::string& path) {
  return fmt::format("{}/{}", kFolder, fs::path(path).filename().string());
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The modification time of a file, for files that are missing in the state file.
double modified(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return 0;
  return static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
}

}  // namespace

std::string unreadable_reason(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.is_open() || (errno != EACCES && errno != EPERM)) return {};
  return std::strerror(errno);
}

CheckpointStore::CheckpointStore(std::string run_dir, const RetentionRules& rules, Clock clock)
    : run_dir_(std::move(run_dir)),
      rules_(rules),
      clock_(clock ? std::move(clock) : Clock(now)),
      begin_(clock_()) {
  LOCKSTEP_REQUIRE(rules.keep >= 0, ErrorKind::config,
                   "checkpoint.keep is {}; it is a number of files, 0 for all", rules.keep);
  LOCKSTEP_REQUIRE(rules.keep_best >= 0, ErrorKind::config,
                   "checkpoint.keep_best is {}; it is a number of files", rules.keep_best);
  LOCKSTEP_REQUIRE(rules.keep_every_hours >= 0, ErrorKind::config,
                   "checkpoint.keep_every_hours is {}; it is a time, 0 for never", rules.keep_every_hours);
}

std::string CheckpointStore::path_of(std::int64_t global_step) const {
  return (fs::path(run_dir_) / kFolder / fmt::format("{}{:08}{}", kPrefix, global_step, kSuffix)).string();
}

// Holds mutex_.
CheckpointStore::Listing CheckpointStore::look() const {
  const CheckpointState state = read_state(run_dir_);
  std::map<std::int64_t, double> times, metrics;
  std::set<std::int64_t> preserved;
  for (std::size_t i = 0; i < state.times.size(); ++i)
    if (const auto step = step_of(state.paths[i])) times[*step] = state.times[i];
  for (const auto& [path, metric] : state.metrics)
    if (const auto step = step_of(path)) metrics[*step] = metric;
  for (const std::string& path : state.preserved)
    if (const auto step = step_of(path)) preserved.insert(*step);
  for (const auto& [step, metric] : noted_) metrics[step] = metric;

  Listing listing;
  std::error_code code;
  const fs::path folder = fs::path(run_dir_) / kFolder;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    KeptCheckpoint found;
    found.path = at->path().string();
    const auto step = step_of(found.path);
    if (!step) continue;
    found.step = *step;
    found.time = times.contains(*step) ? times[*step] : modified(found.path);
    if (metrics.contains(*step)) found.metric = metrics[*step];
    found.preserved = preserved.contains(*step);
    listing.all.push_back(std::move(found));
  }
  if (code && code != std::errc::no_such_file_or_directory)
    throw Error(ErrorKind::checkpoint, fmt::format("cannot be listed: {}", code.message()), folder.string(),
                "Check that it is a folder, and its permissions.");
  std::sort(listing.all.begin(), listing.all.end(),
            [](const KeptCheckpoint& a, const KeptCheckpoint& b) { return a.step < b.step; });
  listing.last_preserved = begin_;
  if (state.last_preserved)
    listing.last_preserved = *state.last_preserved;
  else if (!listing.all.empty())
    listing.last_preserved = std::min(begin_, listing.all.front().time);
  return listing;
}

// Holds mutex_.
void CheckpointStore::write_state(const std::string& newest, const Listing& listing) const {
  CheckpointState state;
  state.newest = newest;
  for (const KeptCheckpoint& kept : listing.all) {
    if (!kept.stays()) continue;
    state.paths.push_back(relative(kept.path));
    state.times.push_back(kept.time);
    if (kept.preserved) state.preserved.push_back(relative(kept.path));
    if (kept.metric) state.metrics[relative(kept.path)] = *kept.metric;
  }
  if (const KeptCheckpoint* const best = best_of(listing.all, rules_.larger_is_better))
    state.best = relative(best->path);
  if (rules_.keep_every_hours > 0) state.last_preserved = listing.last_preserved;
  write_file_atomically(state_path(run_dir_), format_checkpoint_state(state), ErrorKind::checkpoint);
}

std::string CheckpointStore::save(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors,
                                  const std::atomic<bool>* cancelled) {
  const fs::path folder = fs::path(run_dir_) / kFolder;
  std::error_code code;
  // Not create_directories: a run directory that has been removed is not made again.
  if (fs::create_directory(folder, code)) flush_folder(run_dir_, ErrorKind::checkpoint);
  if (code)
    throw Error(ErrorKind::checkpoint, "cannot create the folder: " + code.message(), folder.string(),
                "Check the permissions of the run directory.");
  const std::string path = path_of(header.global_step);
  write_checkpoint(path, header, tensors, cancelled);

  const std::lock_guard lock(mutex_);
  Listing listing = look();
  // Later steps belong to a run that was set back: they count as the oldest.
  const auto rest =
      std::stable_partition(listing.all.begin(), listing.all.end(),
                            [&](const KeptCheckpoint& saved) { return saved.step > header.global_step; });
  LOCKSTEP_CHECK(rest != listing.all.end() && listing.all.back().step == header.global_step,
                 "{} is not in its folder", path);
  KeptCheckpoint& written = listing.all.back();
  written.time = clock_();
  written.preserved = false;  // what was there under this name is gone
  written.metric.reset();
  if (const auto noted = noted_.find(header.global_step); noted != noted_.end())
    written.metric = noted->second;
  apply_retention(listing.all, rules_, listing.last_preserved);
  write_state(relative(path), listing);
  for (const KeptCheckpoint& old : listing.all)
    if (!old.stays() && !fs::remove(old.path, code) && code)
      log_warning("{}: cannot remove this old checkpoint: {}", old.path, code.message());
  return path;
}

// Holds mutex_. Nothing goes now: only the next save removes files.
void CheckpointStore::rewrite_state(Listing listing) const {
  for (KeptCheckpoint& kept : listing.all) kept.recent = true;
  try {
    const CheckpointState state = read_state(run_dir_);
    if (!state.newest.empty()) write_state(state.newest, listing);
  } catch (const Error& error) {
    log_warning("the metrics of checkpoints could not be recorded: {}", message_of(error));
  }
}

void CheckpointStore::note_metric(std::int64_t step, double value) {
  if (!std::isfinite(value)) return;
  const std::lock_guard lock(mutex_);
  noted_[step] = value;
  std::error_code code;
  if (rules_.keep_best > 0 && fs::exists(path_of(step), code)) rewrite_state(look());
}

void CheckpointStore::forget_metrics() {
  const std::lock_guard lock(mutex_);
  noted_.clear();
  Listing listing = look();
  for (KeptCheckpoint& kept : listing.all) kept.metric.reset();
  rewrite_state(std::move(listing));
}

std::vector<KeptCheckpoint> CheckpointStore::list() const {
  const std::lock_guard lock(mutex_);
  Listing listing = look();
  apply_retention(listing.all, rules_, listing.last_preserved);
  return std::move(listing.all);
}

std::optional<KeptCheckpoint> CheckpointStore::recorded_best() const {
  const std::lock_guard lock(mutex_);
  const std::optional<std::int64_t> step = step_of(read_state(run_dir_).best);
  const std::vector<KeptCheckpoint> all = look().all;
  const auto found = step ? std::ranges::find(all, *step, &KeptCheckpoint::step) : all.end();
  return found == all.end() ? std::nullopt : std::optional(*found);
}

void CheckpointStore::require_room(std::size_t checkpoint_bytes) const {
  const std::vector<KeptCheckpoint> all = list();
  const auto there = std::count_if(all.begin(), all.end(),
                                   [](const KeptCheckpoint& kept) { return kept.recent || kept.best; });
  const std::int64_t wanted = rules_.keep == 0 ? 0 : rules_.keep + rules_.keep_best;
  const auto files = static_cast<std::size_t>(std::max<std::int64_t>(wanted - there, 0) + 1);
  const std::size_t free = free_bytes(run_dir_);
  if (free / files >= checkpoint_bytes) return;
  const auto megabytes = [](std::size_t bytes) { return 1e-6 * static_cast<double>(bytes); };
  throw Error(
      ErrorKind::checkpoint,
      fmt::format(
          "the disk is too full: {} more checkpoint{} of {:.1f} MB will need {:.1f} MB, {:.1f} MB are free",
          files, files == 1 ? "" : "s", megabytes(checkpoint_bytes), megabytes(files * checkpoint_bytes),
          megabytes(free)),
      run_dir_, "Free some space, lower checkpoint.keep, or choose a run directory on another disk.");
}

/// Where newest_intact() looks, in this order.
std::vector<std::string> CheckpointStore::candidates() const {
  std::vector<std::string> paths;
  std::optional<std::int64_t> below;
  const std::lock_guard lock(mutex_);
  if (const std::string recorded = read_state(run_dir_).newest; !recorded.empty()) {
    paths.push_back((fs::path(run_dir_) / recorded).string());  // or as it is, if it is absolute
    below = step_of(recorded);
  }
  const std::vector<KeptCheckpoint> all = look().all;
  for (auto saved = all.rbegin(); saved != all.rend(); ++saved)
    if ((paths.empty() || saved->path != paths.front()) && (!below || saved->step < *below))
      paths.push_back(saved->path);
  return paths.empty() ? copied_into(run_dir_) : paths;
}

std::optional<CheckpointFile> CheckpointStore::open_newest_intact(std::vector<std::string>* damaged) const {
  for (int looks = 1;; ++looks) {
    const std::vector<std::string> paths = candidates();
    std::vector<std::string> wrong;
    bool again = false;
    for (const std::string& path : paths) {
      // It may be intact: an older one must not take its place.
      if (const std::string reason = unreadable_reason(path); !reason.empty())
        throw Error(ErrorKind::checkpoint, fmt::format("cannot be read: {}", reason), path,
                    "Check the permissions of the file and its folder, or move it away to use an older one.");
      fault_replaced_checkpoint(run_dir_, path);
      try {
        CheckpointFile file(path);
        file.verify();
        if (damaged != nullptr) std::ranges::move(wrong, std::back_inserter(*damaged));
        return file;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::checkpoint) throw;
        std::error_code code;
        // A file that is gone while no other program saves checkpoints counts as a damaged one.
        again = looks < kMostLooks && !fs::exists(path, code) && candidates() != paths;
        if (again) break;
        wrong.push_back(fmt::format("{}: {}", error.where(), error.what_happened()));
      }
    }
    if (again) continue;
    if (damaged != nullptr) std::ranges::move(wrong, std::back_inserter(*damaged));
    return std::nullopt;
  }
}

std::optional<std::string> CheckpointStore::newest_intact(std::vector<std::string>* damaged) const {
  const std::optional<CheckpointFile> file = open_newest_intact(damaged);
  return file ? std::optional(file->path()) : std::nullopt;
}

std::optional<CheckpointFile> CheckpointStore::open_newest() const {
  for (int looks = 1;; ++looks) {
    const std::vector<std::string> paths = candidates();
    if (paths.empty()) return std::nullopt;
    try {
      return CheckpointFile(paths.front());
    } catch (const Error&) {
      std::error_code code;
      if (looks == kMostLooks || fs::exists(paths.front(), code) || candidates() == paths) throw;
    }
  }
}

void CheckpointStore::clean() {
  std::vector<fs::path> folders{run_dir_};
  std::error_code code;
  for (fs::directory_iterator at(run_dir_, code), end; !code && at != end; at.increment(code)) {
    std::error_code unknown;  // a folder that is a link belongs to somebody else
    if (fs::is_directory(at->symlink_status(unknown))) folders.push_back(at->path());
  }
  for (const fs::path& folder : folders) {
    std::vector<fs::path> leftovers;
    for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
      if (is_temporary_name(at->path().filename().string())) leftovers.push_back(at->path());
    for (const fs::path& path : leftovers)
      if (!fs::remove(path, code) && code)
        log_warning("{}: cannot remove what a killed run left: {}", path.string(), code.message());
  }
}

void fault_replaced_checkpoint(const std::string& run_dir, const std::string& path) {
  const std::optional<std::int64_t> step = step_of(path);
  if (!step || !fault_is("replaced_checkpoint")) return;
  const std::string next = CheckpointStore(run_dir, 0).path_of(*step + 1);
  fs::rename(path, next);
  std::string state = read_whole_file(state_path(run_dir), ErrorKind::checkpoint);
  for (std::size_t at = 0; (at = state.find(relative(path), at)) != std::string::npos;)
    state.replace(at, relative(path).size(), relative(next));
  write_file_atomically(state_path(run_dir), state, ErrorKind::checkpoint);
}

std::optional<std::int64_t> newest_checkpoint_step(const std::string& run_dir) {
  return step_of(read_state(run_dir).newest);
}

}  // namespace lockstep
