// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/left_segments.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/cpu.h"
#include "core/name_list.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

struct Candidate {
  LeftSegment segment;
  std::string inode, name;
};

std::vector<Candidate> settled_segments(const std::vector<std::string>& folders, double settled_seconds) {
  std::vector<Candidate> found;
  std::error_code failed;
  for (const std::string& folder : folders) {
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
      struct stat status {};
      const std::string name = at->path().filename().string();
      if (!is_segment_name(name, host_name())) continue;
      if (::lstat(at->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      if (status.st_uid != ::geteuid()) continue;
      if (std::difftime(std::time(nullptr), status.st_mtime) < settled_seconds) continue;
      found.push_back({{at->path().string(), static_cast<std::uint64_t>(status.st_size)},
                       std::to_string(status.st_ino),
                       "/" + name});
    }
  }
  return found;
}

/// The fields of a line of /proc/PID/maps: addresses, permissions, offset, device, inode, path. The folder
/// may have another path there.
bool maps(const std::string& line, const Candidate& candidate) {
  std::size_t at = 0;
  for (int field = 0; field < 4; ++field) at = line.find(' ', at) + 1;
  return line.compare(at, candidate.inode.size() + 1, candidate.inode + " ") == 0 &&
         line.find(candidate.name) != std::string::npos;
}

bool is_process(const fs::path& path) {
  const std::string name = path.filename().string();
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// The first PID namespace has this inode number in every Linux (PROC_PID_INIT_INO).
constexpr const char* kFirstNamespace = "pid:[4026531836]";

/// /proc is mounted with hidepid: processes of this user that may not be traced do not appear.
bool hides_processes(const fs::path& proc) {
  std::ifstream mounts(proc / "self" / "mounts");
  bool is_known = false;
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" /proc proc ") == std::string::npos) continue;
    is_known = true;
    const std::size_t option = line.find("hidepid=");
    if (option != std::string::npos && line.compare(option, 9, "hidepid=0") != 0 &&
        line.compare(option, 11, "hidepid=off") != 0)
      return true;
  }
  return !is_known;
}

/// A thread of the kernel, and a process that has ended, has no memory.
bool shows_memory(const fs::path& process) {
  const int file = ::open((process / "maps").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ESRCH;
  ::close(file);
  return true;
}

/// Of another user, as its status says: a segment can be mapped by its own user alone.
bool is_of_another_user(const fs::path& process) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Uid:")) continue;
    std::istringstream fields(line.substr(4));
    for (uid_t user = 0; fields >> user;)
      if (user == ::geteuid()) return false;
    return true;
  }
  return !fs::exists(process);  // it has ended
}

}  // namespace

bool sees_all_processes(const std::string& proc) {
  std::error_code failed;
  if (fs::read_symlink(fs::path(proc) / "self" / "ns" / "pid", failed) != kFirstNamespace || failed)
    return false;
  if (hides_processes(proc)) return false;
  for (fs::directory_iterator at(proc, failed), end; !failed && at != end; at.increment(failed)) {
    if (!is_process(at->path())) continue;
    if (!shows_memory(at->path()) && !is_of_another_user(at->path())) return false;
  }
  return !failed;
}

std::vector<LeftSegment> in_shared_memory(const std::vector<LeftSegment>& segments) {
  std::vector<LeftSegment> found;
  std::ranges::copy_if(segments, std::back_inserter(found), [](const LeftSegment& segment) {
    return fs::path(segment.path).parent_path() == "/dev/shm";
  });
  return found;
}

bool is_segment_name(std::string_view name, std::string_view host) {
  for (const std::string_view prefix : {"nccl-", "ucx_shm_posix_"})
    if (name.starts_with(prefix) && name.size() > prefix.size()) return true;
  const std::string own = std::string(host.substr(0, host.find('.'))) + ".";
  for (const std::string_view prefix : {"vader_segment.", "sm_segment."})  // of Open MPI 4 and 5
    if (name.starts_with(prefix) && name.substr(prefix.size()).starts_with(own)) return true;
  return false;
}

std::vector<std::string> segment_folders(GetEnv get_env) {
  std::vector<std::string> folders{"/dev/shm"};
  for (const char* name : {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"})
    if (const char* folder = get_env(name); folder != nullptr && std::ranges::count(folders, folder) == 0)
      folders.emplace_back(folder);
  return folders;
}

std::vector<LeftSegment> left_segments(const std::vector<std::string>& folders, double settled_seconds) {
  std::vector<Candidate> candidates = settled_segments(folders, settled_seconds);
  std::error_code failed;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
    if (candidates.empty()) break;
    if (!is_process(at->path())) continue;
    std::ifstream file(at->path() / "maps");
    for (std::string line; std::getline(file, line);)
      std::erase_if(candidates, [&](const Candidate& candidate) { return maps(line, candidate); });
  }
  if (failed) return {};  // who uses them is not known
  std::vector<LeftSegment> segments;
  for (Candidate& candidate : candidates) segments.push_back(std::move(candidate.segment));
  std::ranges::sort(segments, {}, &LeftSegment::path);
  return segments;
}

std::string segments_text(const std::vector<LeftSegment>& segments) {
  std::uint64_t bytes = 0;
  std::vector<std::string> paths;
  for (const LeftSegment& segment : segments) {
    bytes += segment.bytes;
    paths.push_back(segment.path);
  }
  return fmt::format("{} segment{} of shared memory, {:.1f} MB: {}", segments.size(),
                     segments.size() == 1 ? "" : "s", 1e-6 * static_cast<double>(bytes), name_list(paths, 3));
}

std::vector<LeftSegment> remove_segments(const std::vector<LeftSegment>& segments) {
  std::vector<LeftSegment> kept;
  for (const LeftSegment& segment : segments)
    if (::unlink(segment.path.c_str()) != 0) kept.push_back(segment);
  return kept;
}

}  // namespace lockstep
