// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/stage_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "core/fault.h"
#include "io/atomic_file.h"
#include "io/crc32c.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPieceBytes = std::int64_t{8} << 20;
constexpr int kFolders = 256;  ///< of copies, by the first two digits of their names

FileOrigin origin_of(const FileDescriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return {};
  return {status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_dev,
          status.st_ino};
}

/// Reads up to `bytes`; fewer at the end. -1: errno says why.
ssize_t read_at(const FileDescriptor& file, char* to, std::int64_t offset, std::int64_t bytes) {
  std::int64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file.get(), to + done, static_cast<std::size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += got;
  }
  return done;
}

bool write_at(const FileDescriptor& file, const char* from, std::int64_t offset, std::int64_t bytes) {
  if (fault_is("ENOSPC_in_stage")) {
    errno = ENOSPC;
    return false;
  }
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t put =
        ::pwrite(file.get(), from + done, static_cast<std::size_t>(bytes - done), offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += put;
  }
  return true;
}

}  // namespace

std::vector<StagePiece> stage_pieces(const std::vector<StagedFile>& files) {
  std::vector<StagePiece> pieces;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::int64_t bytes = files[i].origin.bytes;
    std::int64_t offset = 0;
    do {
      const std::int64_t now = std::min(kPieceBytes, bytes - offset);
      pieces.push_back({static_cast<std::int64_t>(i), offset, now});
      offset += now;
    } while (offset < bytes);
  }
  return pieces;
}

void prepare_stage(const std::string& folder, const std::vector<StagedFile>& files,
                   const StagedPieces& known) {
  const auto make = [](const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      throw file_error(ErrorKind::data, "make the folder", path, errno);
  };
  const std::string all = folder + "/files";
  make(all);
  for (int i = 0; i < kFolders; ++i) make(fmt::format("{}/{:02x}", all, i));
  std::unordered_map<std::string_view, const FileOrigin*> wanted;
  if (!known.empty())
    for (const StagedFile& file : files) wanted.emplace(file.name, &file.origin);
  for (int i = 0; i < kFolders; ++i)
    for (const fs::directory_entry& entry : fs::directory_iterator(fmt::format("{}/{:02x}", all, i))) {
      const std::string name = fmt::format("{:02x}/{}", i, entry.path().filename().string());
      const auto found = wanted.find(name);
      if (found != wanted.end() && known.knows(name, *found->second)) continue;
      std::error_code failed;
      fs::remove_all(entry.path(), failed);
      if (failed)
        throw Error(ErrorKind::data, fmt::format("an old copy cannot be removed: {}", failed.message()),
                    entry.path().string(), "Remove the folder.");
    }
}

void require_stage_room(const std::string& place, std::int64_t bytes, const std::vector<StagedFile>& files) {
  const std::size_t available = free_bytes(place);
  if (bytes <= 0 || static_cast<std::size_t>(bytes) <= available) return;
  const std::string others = files.size() > 1 ? fmt::format(" and {} more files", files.size() - 1) : "";
  throw Error(ErrorKind::data,
              fmt::format("has no room for the copies of {}{}: {} bytes are needed, {} are free",
                          files.front().path, others, bytes, available),
              place, "Free space there, choose another folder, or leave out data.stage_to.");
}

void StageCopier::fail_to_write(const StagedFile& file, int code) const {
  throw Error(
      ErrorKind::data,
      fmt::format("cannot be copied to {}: {}; {} bytes are needed there for all files, {} are free",
                  options_.folder, std::strerror(code), options_.bytes_needed, free_bytes(options_.folder)),
      file.path, "Free space there, choose another folder, or leave out data.stage_to.");
}

bool StageCopier::is_there(const StagedFile& file, const StagePiece& piece, std::vector<char>& buffer) const {
  const auto checksum = known_.checksum(file.name, file.origin, piece.offset, piece.bytes);
  if (!checksum) return false;
  const FileDescriptor copy(::open(path_of(file).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!copy.is_open() || origin_of(copy).bytes < piece.offset + piece.bytes) return false;
  if (!options_.verify) return true;
  return read_at(copy, buffer.data(), piece.offset, piece.bytes) == piece.bytes &&
         crc32c(buffer.data(), static_cast<std::size_t>(piece.bytes)) == *checksum;
}

bool StageCopier::copy(const StagedFile& file, const StagePiece& piece, std::vector<char>& buffer) const {
  if (buffer.size() < static_cast<std::size_t>(piece.bytes))
    buffer.resize(static_cast<std::size_t>(piece.bytes));
  if (is_there(file, piece, buffer)) return false;
  const auto bytes = static_cast<std::size_t>(piece.bytes);
  const FileDescriptor from(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t got = from.is_open() ? read_at(from, buffer.data(), piece.offset, piece.bytes) : -1;
  if (got < 0) throw file_error(ErrorKind::data, from.is_open() ? "read" : "open", file.path, errno);
  if (got != piece.bytes || !(origin_of(from) == file.origin))
    throw Error(ErrorKind::data, "changed while it was copied", file.path,
                "Start when the file is complete and nothing writes to it.");
  const std::uint32_t checksum = crc32c(buffer.data(), bytes);
  FileDescriptor to(::open(path_of(file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!to.is_open() || !write_at(to, buffer.data(), piece.offset, piece.bytes)) fail_to_write(file, errno);
  if (fault_is("flipped_bit_in_stage") && !buffer.empty()) {
    const auto flipped = static_cast<char>(buffer.front() ^ 1);
    write_at(to, &flipped, piece.offset, 1);
  }
  if (options_.verify) {
    std::ranges::fill(buffer, 0);
    const ssize_t again = read_at(to, buffer.data(), piece.offset, piece.bytes);
    if (again != piece.bytes || crc32c(buffer.data(), bytes) != checksum)
      throw Error(ErrorKind::data,
                  fmt::format("its copy {} differs from what was read, from byte {} on: {}", path_of(file),
                              piece.offset, again < 0 ? std::strerror(errno) : "wrong checksum"),
                  file.path,
                  "The disk or the memory of this node may be damaged: use another folder or node.");
  }
  if (to.close() != 0) fail_to_write(file, errno);
  manifest_.add(file.name, file.origin, piece.offset, piece.bytes, checksum);
  fault_kill("kill_in_stage");
  return true;
}

void StageCopier::check_size(const StagedFile& file) const {
  struct stat status {};
  if (::stat(path_of(file).c_str(), &status) == 0 && status.st_size == file.origin.bytes) return;
  throw Error(
      ErrorKind::data,
      fmt::format("its copy {} has {} bytes instead of {}", path_of(file), status.st_size, file.origin.bytes),
      file.path, "Something else changes the folder of data.stage_to: use another one.");
}

}  // namespace lockstep
