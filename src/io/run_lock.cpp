// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>

#include "core/cpu.h"
#include "core/deadline.h"
#include "core/log.h"
#include "core/run_file.h"
#include "core/run_signals.h"
#include "io/atomic_file.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostHolderBytes = 1024;
constexpr std::chrono::milliseconds kLook{20};  // between two tries to get the lock
constexpr double kQuietSeconds = 1;             // a wait is announced after this time

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

  /// Tries once to lock, again if the file is removed between its opening and the lock. 0, or the errno.
  int lock() {
    constexpr int kTries = 10;
    int failure = 0;
    for (int i = 0; i < kTries; ++i) {
      file = FileDescriptor(open_run_file(path, O_RDWR | O_CREAT, ErrorKind::config));
      if (!file.is_open()) throw file_error(ErrorKind::config, "open the lock file", path, errno);
      do {
        failure = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
      } while (failure == EINTR);
      if (failure != 0 || is_current()) break;
    }
    return failure;
  }

  /// True if the open file is the one that has the name.
  bool is_current() const {
    struct stat open {
    }, named{};
    return ::fstat(file.get(), &open) != 0 || ::stat(path.c_str(), &named) != 0 ||
           (open.st_dev == named.st_dev && open.st_ino == named.st_ino);
  }
};

RunLock::RunLock(const std::string& run_dir, double patience_seconds) : impl_(std::make_unique<Impl>()) {
  impl_->folder = run_dir;
  impl_->path = run_dir + "/.lock";
  int failure = impl_->lock();
  const auto end = deadline_after(patience_seconds);
  const auto announcement = deadline_after(std::min(kQuietSeconds, patience_seconds));
  bool announced = false;
  while (failure == EWOULDBLOCK && stop_signal() == 0 && std::chrono::steady_clock::now() < end) {
    if (!announced && std::chrono::steady_clock::now() >= announcement) {
      log_info("the run directory {} is in use by {}; waiting up to {:.3g} s for its end", run_dir,
               holder(impl_->file), patience_seconds);
      announced = true;
    }
    std::this_thread::sleep_for(kLook);
    failure = impl_->lock();
  }
  if (failure == EWOULDBLOCK)
    throw Error(ErrorKind::config, fmt::format("the run directory is in use by {}", holder(impl_->file)),
                run_dir,
                "Wait until that run has ended, stop it, or choose another directory with --run-dir.");
  if (failure != 0)
    log_warning("{}: this file system cannot lock ({}); make sure that no other run uses the run directory",
                impl_->path, std::strerror(failure));

  // Information for users; the lock does not depend on it.
  const std::string text = this_process() + "\n";
  if (::ftruncate(impl_->file.get(), 0) != 0 || !write_fully(impl_->file.get(), text.data(), text.size()))
    log_warning("{}: cannot write the holder of the lock: {}", impl_->path, std::strerror(errno));
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
