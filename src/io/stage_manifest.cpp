// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/stage_manifest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <vector>

#include "io/atomic_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFilePrefix = "pieces.";

std::string head() {
  std::string boot;
  try {
    boot = read_whole_file("/proc/sys/kernel/random/boot_id", ErrorKind::data);
  } catch (const Error&) {
    boot = "unknown";
  }
  return fmt::format("lockstep-stage 1 {}\n", boot.substr(0, boot.find('\n')));
}

template <typename Number>
bool take(std::string_view& line, Number& value, int base = 10) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

FileOrigin origin_of_file(const std::string& path) {
  // Without waiting for the other end of a FIFO.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0)
    throw Error(ErrorKind::data, fmt::format("cannot open: {}", std::strerror(errno)), path,
                "Check that the file exists, its permissions, and that the path is spelled right.");
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorKind::data, "is not a regular file", path,
                "Give the path of a file, not of a folder or device.");
  return {status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_dev,
          status.st_ino};
}

StagedPieces::StagedPieces(const std::string& folder) {
  const std::string expected = head();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with(kFilePrefix)) continue;
    const std::string text = read_whole_file(entry.path().string(), ErrorKind::data);
    if (!text.starts_with(expected)) continue;  // of another start of the node
    std::string_view left = std::string_view(text).substr(expected.size());
    for (std::size_t end = 0; (end = left.find('\n')) != std::string_view::npos; left.remove_prefix(end + 1))
      add(left.substr(0, end));
  }
}

void StagedPieces::add(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), name.size() + 1));
  FileOrigin origin;
  std::int64_t offset = 0;
  Piece piece{};
  if (!take(line, origin.bytes) || !take(line, origin.changed_ns) || !take(line, origin.device) ||
      !take(line, origin.inode) || !take(line, offset) || !take(line, piece.bytes) ||
      !take(line, piece.checksum, 16))
    return;
  auto [found, is_new] = files_.try_emplace(std::string(name));
  if (!is_new && !(found->second.origin == origin)) {
    if (found->second.origin.changed_ns > origin.changed_ns) return;
    found->second.pieces.clear();  // the file has changed since
  }
  found->second.origin = origin;
  found->second.pieces[offset] = piece;
}

std::optional<std::uint32_t> StagedPieces::checksum(const std::string& name, const FileOrigin& origin,
                                                    std::int64_t offset, std::int64_t bytes) const {
  const auto file = files_.find(name);
  if (file == files_.end() || !(file->second.origin == origin)) return std::nullopt;
  const auto piece = file->second.pieces.find(offset);
  if (piece == file->second.pieces.end() || piece->second.bytes != bytes) return std::nullopt;
  return piece->second.checksum;
}

bool StagedPieces::knows(const std::string& name, const FileOrigin& origin) const {
  const auto file = files_.find(name);
  return file != files_.end() && file->second.origin == origin;
}

StageManifest::StageManifest(const std::string& folder, int local_rank)
    : path_(fmt::format("{}/{}{}", folder, kFilePrefix, local_rank)) {
  const auto fail = [&](const char* what) { throw file_error(ErrorKind::data, what, path_, errno); };
  file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_.is_open()) fail("open");
  const std::string wanted = head();
  std::vector<char> found(wanted.size());
  const ssize_t got = ::pread(file_.get(), found.data(), found.size(), 0);
  const bool same = got == static_cast<ssize_t>(wanted.size()) &&
                    wanted.compare(0, wanted.size(), found.data(), found.size()) == 0;
  if (same) {  // a torn last line ends here
    struct stat status {};
    char last = '\n';
    if (::fstat(file_.get(), &status) != 0 || ::pread(file_.get(), &last, 1, status.st_size - 1) != 1)
      fail("read");
    if (last != '\n' && !write_fully(file_.get(), "\n", 1)) fail("write");
    return;
  }
  if (::ftruncate(file_.get(), 0) != 0 || !write_fully(file_.get(), wanted.data(), wanted.size()))
    fail("write");
}

void StageManifest::add(const std::string& name, const FileOrigin& origin, std::int64_t offset,
                        std::int64_t bytes, std::uint32_t checksum) {
  const std::string line = fmt::format("{} {} {} {} {} {} {} {:08x}\n", name, origin.bytes, origin.changed_ns,
                                       origin.device, origin.inode, offset, bytes, checksum);
  const std::lock_guard lock(mutex_);
  if (!write_fully(file_.get(), line.data(), line.size()))
    throw file_error(ErrorKind::data, "write", path_, errno);
}

}  // namespace lockstep
