// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/output_file.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "core/scalar.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel
constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

Error refused(const std::string& path, std::string what, std::string advice) {
  return Error(ErrorKind::config, std::move(what), path, std::move(advice));
}

/// The descriptor that a path names: "-", /dev/stdout, /dev/stderr, /dev/fd/N. These are not opened by name,
/// because /dev/stdout of `command > file` names that file, which must not be renamed over.
std::optional<int> named_descriptor(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (path.starts_with(folder))
      if (const auto number = parse_integer(path.substr(folder.size())); number && *number >= 0)
        return static_cast<int>(*number);
  return std::nullopt;
}

/// The path with symbolic links of its last part followed. The target need not exist.
std::string followed(const std::string& path) {
  fs::path at(path);
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code code;
    if (!fs::is_symlink(at, code)) return at.string();
    const fs::path target = fs::read_symlink(at, code);
    if (code) throw file_error(ErrorKind::config, "read the symbolic link", path, code.value());
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  throw file_error(ErrorKind::config, "write", path, ELOOP);
}

void refuse_inputs(const std::string& path, const struct stat& status, std::span<const std::string> inputs) {
  for (const std::string& input : inputs) {
    struct stat other {};
    if (::stat(input.c_str(), &other) != 0) continue;
    if (other.st_dev == status.st_dev && other.st_ino == status.st_ino)
      throw refused(path, fmt::format("is also an input of this command ({})", input),
                    "Choose another --output: the input would be overwritten.");
  }
}

/// A file without a name, for contents that are copied to a stream. In memory if the kernel has memfd.
FileDescriptor open_spool() {
  FileDescriptor file(::memfd_create("lockstep-output", MFD_CLOEXEC));
  if (file.is_open()) return file;
  std::string name = (fs::temp_directory_path() / "lockstep-output-XXXXXX").string();
  file = FileDescriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.is_open()) throw file_error(ErrorKind::config, "create a temporary file", name, errno);
  ::unlink(name.c_str());
  return file;
}

}  // namespace

std::string_view output_ending(const std::string& path, std::span<const std::string_view> known) {
  std::string ending = fs::path(path).extension().string();
  for (char& letter : ending)
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  for (const std::string_view candidate : known)
    if (ending == candidate) return candidate;
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (named_descriptor(path) || (exists && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode))))
    return known.front();
  if (exists && S_ISDIR(status.st_mode)) throw refused(path, "is a folder", "Give the name of a file in it.");
  throw refused(path,
                ending.empty()
                    ? std::string("has no ending that names a format")
                    : fmt::format("the ending {} names no format that this command writes", ending),
                fmt::format("Known endings: {}.", fmt::join(known, ", ")));
}

void require_plain_output(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  throw refused(
      path, S_ISLNK(status.st_mode) ? "is a symbolic link, which is not followed" : "is not a regular file",
      "Lockstep changes no file outside of its run directory: remove it, or give --output.");
}

bool is_standard_output(const std::string& path) { return named_descriptor(path) == STDOUT_FILENO; }

OutputFile::OutputFile(const std::string& path, std::span<const std::string> inputs) : path_(path) {
  if (path.empty())
    throw refused("--output", "is empty", "Give the name of a file, or - for standard output.");
  if (const auto number = named_descriptor(path)) {
    open_stream(::dup(*number));
    return;
  }
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) throw file_error(ErrorKind::config, "write", path, errno);
  if (!exists) {
    open_file(followed(path), std::nullopt);
    return;
  }
  switch (status.st_mode & S_IFMT) {
    case S_IFREG:
      refuse_inputs(path, status, inputs);
      if (::access(path.c_str(), W_OK) != 0) throw file_error(ErrorKind::config, "write", path, errno);
      open_file(followed(path), status.st_mode & 0777U);
      break;
    case S_IFIFO:
    case S_IFCHR:
      open_stream(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
      break;
    case S_IFDIR:
      throw refused(path, "is a folder", "Give the name of a file in it.");
    case S_IFBLK:
      throw refused(path, "is a block device", "Its contents would be lost: write to a file.");
    default:
      throw refused(path, "is a socket", "Give the name of a file, a FIFO or a device.");
  }
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::open_stream(int descriptor) {
  file_ = FileDescriptor(descriptor);
  if (!file_.is_open()) throw file_error(ErrorKind::config, "open for writing", path_, errno);
  is_stream_ = true;
}

/// Opens a file without a name where the file system has that, so that a killed command leaves nothing.
void OutputFile::open_file(const std::string& target, std::optional<unsigned> mode) {
  const fs::path folder = fs::path(target).parent_path();
  const std::string in = folder.empty() ? "." : folder.string();
  std::error_code code;
  if (!fs::is_directory(in, code))
    throw refused(path_, fmt::format("cannot be written: there is no folder {}", fs::absolute(in).string()),
                  "Make the folder, or choose another --output.");
  if (fs::path(target).filename().empty())
    throw refused(path_, "names no file", "Give the name of a file in a folder.");
  target_ = target;
#ifdef O_TMPFILE
  if (::access("/proc/self/fd", X_OK) == 0)
    file_ = FileDescriptor(::open(in.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666));
#endif
  if (!file_.is_open()) open_named();
  // Keeps the mode of the old file; best effort, because some file systems have no modes.
  if (mode && ::fchmod(file_.get(), *mode) != 0) errno = 0;
}

void OutputFile::open_named() {
  temporary_ = temporary_name(target_);
  ::unlink(temporary_.c_str());
  file_ = FileDescriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_.is_open()) throw file_error(ErrorKind::config, "write", path_, errno);
}

void OutputFile::append(const void* data, std::size_t bytes) {
  if (!write_fully(file_.get(), data, bytes)) throw file_error(ErrorKind::output, "write", path_, errno);
}

std::string OutputFile::shared_path() {
  if (!is_stream_ && temporary_.empty()) name_file();
  return temporary_;
}

int OutputFile::seekable() {
  if (!is_stream_) return file_.get();
  if (::isatty(file_.get()) == 1)
    throw refused(path_, "is a terminal, and the contents are binary", "Write to a file or into a pipe.");
  if (!spool_.is_open()) spool_ = open_spool();
  return spool_.get();
}

/// Appends the contents of `from`.
void OutputFile::append_file(const FileDescriptor& from) {
  std::vector<char> block(kCopyBytes);
  off_t at = 0;
  for (;;) {
    const ssize_t got = ::pread(from.get(), block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error(ErrorKind::output, "read back", path_, errno);
    if (got == 0) return;
    append(block.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

/// Gives the file a temporary name; copies it where the file system cannot link a file without a name.
void OutputFile::name_file() {
  const std::string name = temporary_name(target_);
  ::unlink(name.c_str());
  const std::string link = fmt::format("/proc/self/fd/{}", file_.get());
  if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    temporary_ = name;
    return;
  }
  const FileDescriptor nameless = std::exchange(file_, FileDescriptor());
  open_named();
  append_file(nameless);
}

void OutputFile::publish() {
  if (spool_.is_open()) append_file(spool_);
  if (!is_stream_ && temporary_.empty()) name_file();
  if (file_.close() != 0) throw file_error(ErrorKind::output, "write", path_, errno);
  if (is_stream_) return;
  publish_file(temporary_, target_, ErrorKind::output);
  temporary_.clear();
}

void write_output(const std::string& path, std::string_view text, std::span<const std::string> inputs) {
  OutputFile output(path, inputs);
  output.append(text);
  output.publish();
}

}  // namespace lockstep
