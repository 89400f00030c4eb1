// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "io/file_descriptor.h"
#include "io/file_error.h"
#include "io/staged_files.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostOpen = 64;

/// The open files of this process, the one that was used last at the end.
class OpenFiles {
 public:
  std::shared_ptr<const FileDescriptor> get(const std::string& path, std::int64_t least_bytes) {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(files_, &path, &Entry::path);
    Entry entry = known != files_.end() ? *known : Entry{&path, open(path, least_bytes)};
    if (known != files_.end())
      files_.erase(known);
    else if (files_.size() == kMostOpen)
      files_.erase(files_.begin());
    files_.push_back(entry);
    return entry.file;
  }
  void forget(const std::string& path) {
    const std::lock_guard lock(mutex_);
    std::erase_if(files_, [&](const Entry& entry) { return entry.path == &path; });
  }

 private:
  struct Entry {
    const std::string* path;  ///< its address is the key
    std::shared_ptr<const FileDescriptor> file;
  };

  static std::shared_ptr<const FileDescriptor> open(const std::string& path, std::int64_t least_bytes) {
    auto file = std::make_shared<FileDescriptor>(
        ::open(path_to_open(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file->is_open() || ::fstat(file->get(), &status) != 0)
      throw FileError(fmt::format("cannot open{}: {}", staged_note(path), std::strerror(errno)), path,
                      "Check that the file exists, its permissions, and that the path is spelled right.");
    if (!S_ISREG(status.st_mode))
      throw FileError("is not a regular file", path, "Give the path of a file, not of a folder or device.");
    if (status.st_size < least_bytes)
      throw FileError("became shorter while it was read", path, "Start when the file is complete.");
    return file;
  }

  std::mutex mutex_;
  std::vector<Entry> files_;
};

OpenFiles& open_files() {
  static OpenFiles files;
  return files;
}

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(std::string path) : path_(std::move(path)) {
    struct stat status {};
    if (::fstat(open_files().get(path_, 0)->get(), &status) == 0) bytes_ = status.st_size;
  }
  ~FileBytes() override { open_files().forget(path_); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::size_t read_some(std::int64_t offset, void* to, std::size_t bytes) override {
    const auto file = open_files().get(path_, bytes_);
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::pread(file->get(), static_cast<char*>(to) + done, bytes - done,
                                  offset + static_cast<std::int64_t>(done));
      if (got == 0) break;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        throw FileError(fmt::format("cannot read: {}", std::strerror(errno)),
                        fmt::format("{}, byte {}", path_, offset + static_cast<std::int64_t>(done)),
                        "The disk or the file system may be damaged.");
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  std::int64_t max_bytes() const override { return bytes_; }
  const std::string& where() const override { return path_; }

 private:
  const std::string path_;
  std::int64_t bytes_ = 0;  ///< when it was opened first
};

class PartOfBytes final : public ByteSource {
 public:
  PartOfBytes(std::shared_ptr<ByteSource> source, std::int64_t offset, std::int64_t bytes, std::string where)
      : source_(std::move(source)), offset_(offset), bytes_(bytes), where_(std::move(where)) {}
  std::size_t read_some(std::int64_t offset, void* to, std::size_t bytes) override {
    if (offset >= bytes_) return 0;
    const auto left = static_cast<std::size_t>(bytes_ - offset);
    return source_->read_some(offset_ + offset, to, std::min(bytes, left));
  }
  std::int64_t max_bytes() const override { return bytes_; }
  bool has_random_access() const override { return source_->has_random_access(); }
  const std::string& where() const override { return where_; }

 private:
  const std::shared_ptr<ByteSource> source_;
  const std::int64_t offset_, bytes_;
  const std::string where_;
};

}  // namespace

void ByteSource::read(std::int64_t offset, void* to, std::size_t bytes) {
  const std::size_t got = read_some(offset, to, bytes);
  if (got < bytes)
    throw FileError("ends here, before its data end: truncated, or changed while it was read",
                    fmt::format("{}, byte {}", where(), offset + static_cast<std::int64_t>(got)),
                    "Copy or make the file again; start when it is complete.");
}

std::int64_t exact_bytes(ByteSource& source) {
  if (source.has_random_access()) return source.max_bytes();
  std::vector<char> block(std::size_t{1} << 18);
  std::int64_t bytes = 0;
  for (;;) {
    const std::size_t got = source.read_some(bytes, block.data(), block.size());
    bytes += static_cast<std::int64_t>(got);
    if (got < block.size()) return bytes;
  }
}

std::shared_ptr<ByteSource> file_bytes(const std::string& path) { return std::make_shared<FileBytes>(path); }

std::shared_ptr<ByteSource> part_of_bytes(std::shared_ptr<ByteSource> source, std::int64_t offset,
                                          std::int64_t bytes, std::string where) {
  return std::make_shared<PartOfBytes>(std::move(source), offset, bytes, std::move(where));
}

std::shared_ptr<ByteSource> plain_or_gzip_bytes(const std::string& path) {
  auto file = file_bytes(path);
  std::array<unsigned char, 2> magic{};
  if (file->read_some(0, magic.data(), magic.size()) < magic.size() || magic[0] != 0x1F || magic[1] != 0x8B)
    return file;
  const std::int64_t bytes = file->max_bytes();
  return unpacked_bytes(std::move(file), Packing::gzip, 0, bytes, path);
}

}  // namespace lockstep
