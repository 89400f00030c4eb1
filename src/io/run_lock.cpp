// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

#include "core/cpu.h"
#include "core/log.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostHolderBytes = 1024;

std::string this_process() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 40> since{};
  std::strftime(since.data(), since.size(), "%Y-%m-%d %H:%M:%S %z", &parts);
  return fmt::format("process {} on {} since {}", ::getpid(), host_name(), since.data());
}

/// The text that the holder has written; it may still be writing.
std::string holder(const FileDescriptor& file) {
  std::array<char, kMostHolderBytes> text{};
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  std::string_view line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  line = line.substr(0, line.find('\n'));
  return line.empty() ? "another process" : std::string(line);
}

}  // namespace

struct RunLock::Impl {
  std::string folder, path;
  FileDescriptor file;

  /// True if the open file is the one that has the name.
  bool is_current() const {
    struct stat open {
    }, named{};
    return ::fstat(file.get(), &open) != 0 || ::stat(path.c_str(), &named) != 0 ||
           (open.st_dev == named.st_dev && open.st_ino == named.st_ino);
  }
};

RunLock::RunLock(const std::string& run_dir) : impl_(std::make_unique<Impl>()) {
  impl_->folder = run_dir;
  const std::string& path = impl_->path = run_dir + "/.lock";
  constexpr int kTries = 10;
  int result = 0;
  for (int i = 0; i < kTries; ++i) {  // again if the file is removed between its opening and the lock
    impl_->file = FileDescriptor(open_run_file(path, O_RDWR | O_CREAT, ErrorKind::config));
    if (!impl_->file.is_open()) throw file_error(ErrorKind::config, "open the lock file", path, errno);
    do {
      result = ::flock(impl_->file.get(), LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0 || impl_->is_current()) break;
  }
  if (result != 0 && errno == EWOULDBLOCK)
    throw Error(ErrorKind::config, fmt::format("the run directory is in use by {}", holder(impl_->file)),
                run_dir,
                "Wait until that run has ended, stop it, or choose another directory with --run-dir.");
  if (result != 0)
    log_warning("{}: this file system cannot lock ({}); make sure that no other run uses the run directory",
                path, std::strerror(errno));

  // Information for users; the lock does not depend on it.
  const std::string text = this_process() + "\n";
  if (::ftruncate(impl_->file.get(), 0) != 0 || !write_fully(impl_->file.get(), text.data(), text.size()))
    log_warning("{}: cannot write the holder of the lock: {}", path, std::strerror(errno));
}

std::string RunLock::lost() const {
  struct stat status {};
  const auto gone = [&](const std::string& name) {
    return ::stat(name.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR || errno == ESTALE);
  };
  if (gone(impl_->folder)) return "the run directory has been removed or renamed";
  if (gone(impl_->path))
    return "the file .lock has been removed, so that another run could begin beside this one";
  if (!impl_->is_current()) return "the file .lock has been replaced: another run may use this run directory";
  return {};
}

// Closing releases the lock. The file stays, because removing it could remove the lock of a run that has just
// started.
RunLock::~RunLock() = default;

}  // namespace lockstep
