// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/stage_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/log.h"
#include "core/message_lines.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "lockstep-stage-";
constexpr int kTries = 16;  ///< folders of one key; and if others remove it at the same time
constexpr const char* kAdvice =
    "data.stage_to must be a folder on a disk of each node that this user may write to, such as $TMPDIR.";

bool is_own_folder(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

/// The lock file of a folder, locked exclusively; none if another process has it.
std::optional<FileDescriptor> locked(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) {
    if (errno == ENOENT) return std::nullopt;  // the folder was removed just now
    throw file_error(ErrorKind::data, "make the lock file", path, errno);
  }
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return std::nullopt;
    throw Error(ErrorKind::data, fmt::format("cannot be locked: {}", std::strerror(errno)), path, kAdvice);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || status.st_nlink == 0) return std::nullopt;  // removed meanwhile
  return file;
}

/// Both locks of a folder; the one that claims it.
std::optional<FileDescriptor> claimed(const std::string& folder) {
  std::optional<FileDescriptor> lock = locked(folder + "/lock");
  if (lock && !locked(folder + "/users")) lock.reset();
  return lock;
}

/// All of a claimed folder; the lock at last, so that nobody claims a half of it.
void remove_folder(const std::string& folder) {
  std::error_code failed;
  for (const char* part : {"files", "keep", "users"}) {
    fs::remove_all(folder + "/" + part, failed);
    if (failed) log_warning("{}/{} cannot be removed: {}", folder, part, failed.message());
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
    if (std::error_code ignored; entry.path().filename() != "lock") fs::remove_all(entry.path(), ignored);
  fs::remove(folder + "/lock", failed);
  fs::remove(folder, failed);
}

void remove_leftovers(const std::string& place, const std::string& but) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(place, failed)) {
    const std::string folder = entry.path().string();
    std::error_code ignored;
    if (!entry.path().filename().string().starts_with(kPrefix) || folder == but || !is_own_folder(folder) ||
        fs::exists(folder + "/keep", ignored))
      continue;
    if (const auto lock = claimed(folder)) {
      log_warning("removing {}, which a job has left that was killed", folder);
      remove_folder(folder);
    }
  }
}

}  // namespace

std::string expanded_stage_place(const std::string& text, const std::string& where) {
  std::string place;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      place += text[at++];
      continue;
    }
    const bool braces = text.compare(at, 2, "${") == 0;
    std::size_t end = at += braces ? 2 : 1;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    const std::string name = text.substr(at, end - at);
    if (name.empty() || (braces && (end == text.size() || text[end] != '}')))
      throw Error(ErrorKind::config, fmt::format("data.stage_to: '{}' has a $ without a name", text), where,
                  "Write $NAME or ${NAME} for a variable of the environment.");
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0')
      throw Error(ErrorKind::config,
                  fmt::format("data.stage_to: the environment variable {} is not set", name), where,
                  "Set it on all nodes (mpirun -x), or write the path of a folder.");
    place += value;
    at = end + (braces ? 1 : 0);
  }
  if (!place.starts_with('/'))
    throw Error(ErrorKind::config, fmt::format("data.stage_to: '{}' is no absolute path", place), where,
                kAdvice);
  while (place.size() > 1 && place.ends_with('/')) place.pop_back();
  return place;
}

StageFolder::StageFolder(std::string place, const std::string& key, bool keep) : removes_(!keep) {
  struct stat status {};
  if (::stat(place.c_str(), &status) != 0)
    throw Error(ErrorKind::config, fmt::format("data.stage_to: cannot be used: {}", std::strerror(errno)),
                place, kAdvice);
  if (!S_ISDIR(status.st_mode)) throw Error(ErrorKind::config, "data.stage_to: is no folder", place, kAdvice);
  std::optional<FileDescriptor> lock;
  for (int i = 0; i < kTries && !lock; ++i) {
    path_ = fmt::format("{}/{}{}{}", place, kPrefix, key, i == 0 ? "" : fmt::format("-{}", i));
    if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
      throw file_error(ErrorKind::data, "make the folder", path_, errno);
    if (is_own_folder(path_)) lock = claimed(path_);
  }
  if (!lock)
    throw Error(ErrorKind::data, fmt::format("{} folders of this run are in use by others", kTries), path_,
                "End the jobs that use them, or remove the folders.");
  lock_ = std::move(*lock);
  try {
    remove_leftovers(place, path_);
    if (std::error_code failed; keep)
      write_file_atomically(path_ + "/keep", "", ErrorKind::data);
    else
      fs::remove(path_ + "/keep", failed);
  } catch (...) {
    remove_folder(path_);
    throw;
  }
}

StageFolder::~StageFolder() {
  if (!removes_) return;
  try {
    remove_folder(path_);
  } catch (const std::exception& error) {
    log_warning("{} cannot be removed: {}", path_, message_of(error));
  }
}

StageUse::StageUse(const std::string& folder) {
  const std::string path = folder + "/users";
  users_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!users_.is_open()) throw file_error(ErrorKind::data, "open the lock file", path, errno);
  if (::flock(users_.get(), LOCK_SH | LOCK_NB) != 0)
    throw Error(ErrorKind::data, fmt::format("cannot be locked: {}", std::strerror(errno)), path, kAdvice);
}

}  // namespace lockstep
