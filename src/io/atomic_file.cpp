// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/cpu.h"
#include "core/run_file.h"
#include "io/fault_points.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";
}  // namespace

FileDescriptor::~FileDescriptor() { close(); }

int FileDescriptor::close() {
  const int value = std::exchange(value_, -1);
  return value >= 0 ? ::close(value) : 0;
}

Error file_error(ErrorKind kind, std::string_view action, const std::string& path, int code) {
  std::string advice;
  if (code == ENOSPC || code == EDQUOT)
    advice = "Free some space, or choose a run directory on another disk.";
  if (code == EACCES || code == EROFS || code == EPERM)
    advice = "Check the permissions of the file and its folder.";
  if (code == ENOENT) advice = "Check that the folder exists and that the path is spelled right.";
  return Error(kind, fmt::format("cannot {}: {}", action, std::strerror(code)), path, advice);
}

RemoveOnFailure::~RemoveOnFailure() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::string temporary_name(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string name =
      fmt::format(".{}{}{}-{}", file.filename().string(), kTemporaryMark, host_name(), ::getpid());
  return (file.parent_path() / name).string();
}

bool is_temporary_name(std::string_view file_name) {
  return file_name.starts_with('.') && file_name.find(kTemporaryMark) != std::string_view::npos;
}

bool write_fully(int descriptor, const void* data, std::size_t bytes) {
  const char* position = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, position, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    position += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

void publish_file(const std::string& temporary, const std::string& path, ErrorKind kind) {
  RemoveOnFailure cleanup(temporary);
  FileDescriptor file(::open(temporary.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) throw file_error(kind, "open", temporary, errno);
  fault_point("kill_before_fsync");
  if (faulty_fsync(file.get()) != 0) throw file_error(kind, "flush to disk", temporary, errno);
  if (file.close() != 0) throw file_error(kind, "close", temporary, errno);
  fault_point("kill_before_rename");
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    throw file_error(kind, "rename to its final name", path, errno);
  cleanup.keep();
  fault_point("kill_after_rename");

  flush_folder(std::filesystem::path(path).parent_path().string(), kind);
}

void flush_folder(const std::string& folder, ErrorKind kind) {
  const std::string name = folder.empty() ? "." : folder;
  FileDescriptor directory(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) throw file_error(kind, "open the folder", name, errno);
  // EINVAL: the file system cannot flush folders, and there is no alternative.
  if (::fsync(directory.get()) != 0 && errno != EINVAL)
    throw file_error(kind, "flush the folder", name, errno);
}

std::string existing_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path path = fs::absolute(folder.empty() ? "." : folder, ignored).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path.string();
}

std::size_t free_bytes(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(existing_folder(folder).c_str(), &status) != 0) return SIZE_MAX;
  return static_cast<std::size_t>(status.f_bavail) * status.f_frsize;
}

void write_file_atomically(const std::string& path, std::string_view text, ErrorKind kind) {
  const std::string temporary = temporary_name(path);
  RemoveOnFailure cleanup(temporary);
  ::unlink(temporary.c_str());
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) throw file_error(kind, "create", path, errno);
  if (!write_fully(file.get(), text.data(), text.size()))
    throw file_error(kind, fmt::format("write {} bytes", text.size()), path, errno);
  if (file.close() != 0) throw file_error(kind, "close", path, errno);
  publish_file(temporary, path, kind);
  cleanup.keep();
}

std::string read_whole_file(const std::string& path, ErrorKind kind) {
  FileDescriptor file(open_run_file(path, O_RDONLY, kind));
  if (file.get() < 0) throw file_error(kind, "open", path, errno);
  std::string text;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error(kind, "read", path, errno);
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace lockstep
