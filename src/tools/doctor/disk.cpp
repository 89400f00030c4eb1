// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The disk of run directories: free space, writing, and how long fsync takes; and a file of HDF5, written and
// read.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <vector>

#include "io/atomic_file.h"
#include "io/file_descriptor.h"
#include "io/hdf5_trial.h"
#include "tools/doctor/finding.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr double kSeconds = 0.8;
constexpr std::size_t kBlock = std::size_t{1} << 20, kMostBlocks = 256;
constexpr double kLittleSpace = 1e9, kSlowBytes = 30e6, kSlowFlush = 0.5;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// A file that is removed at the end.
class TrialFile {
 public:
  explicit TrialFile(const std::string& folder)
      : path_((fs::path(folder) / fmt::format(".lockstep-doctor-{}", ::getpid())).string()) {}
  ~TrialFile() { ::unlink(path_.c_str()); }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Finding failed(const std::string& folder, const char* action, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  return {Finding::State::failure, "disk",
          fmt::format("{}: cannot {}: {}", folder, action, std::strerror(error)),
          is_full ? "The disk, or your share of it, is full: delete files, or name another folder with "
                    "--run-dir. A run "
                    "that cannot write a checkpoint ends with exit code 4."
                  : "Name a folder in which you may write with --run-dir."};
}

}  // namespace

Findings check_disk(const std::string& given) {
  fs::path nearest = fs::absolute(given).lexically_normal();
  std::error_code ignored;
  while (nearest.has_relative_path() && !fs::exists(nearest, ignored)) nearest = nearest.parent_path();
  if (!fs::is_directory(nearest, ignored))
    return {failed(nearest.string(), "create a folder there", ENOTDIR)};
  const std::string folder = existing_folder(given);
  const TrialFile file(folder);
  FileDescriptor descriptor(::open(file.path().c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (descriptor.get() < 0) return {failed(folder, "create a file", errno)};
  const std::vector<char> block(kBlock, 'x');
  std::size_t blocks = 0;
  auto begin = Clock::now();
  do {
    if (!write_fully(descriptor.get(), block.data(), block.size())) return {failed(folder, "write", errno)};
    ++blocks;
  } while (blocks < kMostBlocks && since(begin) < kSeconds);
  if (::fsync(descriptor.get()) != 0) return {failed(folder, "flush", errno)};
  const double bytes_per_second = static_cast<double>(blocks * kBlock) / since(begin);
  double slowest = 0;
  begin = Clock::now();
  for (int i = 0; i < 5 && since(begin) < kSeconds; ++i) {
    const auto start = Clock::now();
    if (!write_fully(descriptor.get(), block.data(), 4096)) return {failed(folder, "write", errno)};
    if (::fsync(descriptor.get()) != 0) return {failed(folder, "flush", errno)};
    slowest = std::max(slowest, since(start));
  }
  const double free = static_cast<double>(free_bytes(folder));
  Finding finding{Finding::State::good, "disk",
                  fmt::format("{}: {:.0f} MB/s written and flushed, fsync {:.1f} ms, {:.1f} GB free", folder,
                              bytes_per_second / 1e6, 1e3 * slowest, free / 1e9)};
  if (free < kLittleSpace) {
    finding.state = Finding::State::warning;
    finding.advice = "Little space is left: checkpoint.keep says how many checkpoints a run keeps.";
  } else if (bytes_per_second < kSlowBytes || slowest > kSlowFlush) {
    finding.state = Finding::State::warning;
    finding.advice =
        "A slow disk: checkpoints are written in the background, but the end of a run waits for the last "
        "one. Is "
        "it a network disk that others use?";
  }
  return {finding};
}

Findings check_hdf5(const std::string& given) {
  const std::string folder = existing_folder(given);
  const TrialFile file(folder);
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  try {
    const double seconds = hdf5_trial(file.path(), kBytes);
    return {{Finding::State::good, "HDF5 file",
             fmt::format("{}: {} MiB written, read again and compared in {:.2f} s", folder, kBytes >> 20,
                         seconds)}};
  } catch (const Error& error) {
    return {{Finding::State::failure, "HDF5 file",
             fmt::format("{}: {}", error.where(), error.what_happened()),
             "Checkpoints are HDF5 files: a run would end with exit code 4."}};
  }
}

}  // namespace lockstep
