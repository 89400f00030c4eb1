// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/samples/storage_advice.h"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace lockstep {

namespace {

/// A chunk of more is large for one thread and for the cache.
constexpr double kLargeChunk = 32e6;
/// Unpacking is said to be slow if it takes kSlow times as long as all else.
constexpr double kSlow = 2;
constexpr int kMostThreads = 64;

constexpr std::uint64_t kLustre = 0x0BD00BD0, kBeegfs = 0x19830326;
/// A file of more is worth several servers; smaller ones are read from one as fast.
constexpr std::uintmax_t kLargeFile = std::uintmax_t{1} << 30;
/// The number of small files that are slow to open.
constexpr std::size_t kManyFiles = 10000;
constexpr double kSmallFile = 1e6;

}  // namespace

std::vector<std::string> chunk_advice(const StoredChunks& chunks, bool streamed, double per_second) {
  std::vector<std::string> lines;
  const double mb = chunks.chunk_bytes * 1e-6;
  if (chunks.chunk_bytes > kLargeChunk && chunks.samples_per_chunk > 1)
    lines.push_back(fmt::format(
        "{}: a chunk has {} samples, {:.0f} MB, which are read{} as a whole for each of them, by one thread. "
        "`lockstep convert` writes chunks of about 256 KiB.",
        chunks.where, chunks.samples_per_chunk, mb, chunks.compressed ? " and unpacked" : ""));
  if (chunks.chunk_bytes > kLargeChunk && chunks.samples_per_chunk == 1 && chunks.compressed)
    lines.push_back(fmt::format(
        "{}: each sample is one compressed chunk of {:.0f} MB{}, which one thread unpacks. More "
        "reader_threads unpack several samples at a time; without compression a sample is read only.",
        chunks.where, mb,
        chunks.unpack_seconds > 0 ? fmt::format(" ({:.2g} s)", chunks.unpack_seconds) : ""));
  if (chunks.compressed && !chunks.whole_samples)
    lines.push_back(fmt::format(
        "{}: compressed chunks have parts of samples, so HDF5 unpacks them one at a time, on one "
        "thread. `lockstep convert` writes chunks of whole samples, which all reader_threads unpack.",
        chunks.where));
  const double unpacked = chunks.samples_per_second();
  if (streamed && unpacked > 0 && unpacked * kSlow < per_second) {
    const double wanted = std::min<double>(kMostThreads, std::ceil(per_second / unpacked));
    lines.push_back(fmt::format(
        "{}: one core unpacks {:.3g} samples/s ({:.0f} MB/s), and makes {:.3g} samples/s of unpacked ones "
        "ready. A net that "
        "trains on more than {:.3g} samples/s per reader thread waits in every epoch; up to {:.0f} of them "
        "(data.reader_threads) help here. Raise data.memory_gb until the set stays in memory, or store it "
        "without compression (`lockstep convert`).",
        chunks.where, unpacked, chunks.chunk_bytes / chunks.unpack_seconds * 1e-6, per_second, unpacked,
        wanted));
  }
  return lines;
}

std::uint64_t file_system_of(const std::string& path) {
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return 0;
  return static_cast<std::uint32_t>(status.f_type);
}

std::vector<std::string> file_system_advice(std::span<const std::string> files,
                                            FunctionRef<std::uint64_t(const std::string& path)> type_of) {
  namespace fs = std::filesystem;
  if (files.empty()) return {};
  std::vector<std::string> lines;
  std::string largest;
  std::uintmax_t most = 0, all = 0;
  for (const std::string& file : files) {
    std::error_code failed;
    const std::uintmax_t bytes = fs::file_size(file, failed);
    if (failed) continue;
    all += bytes;
    if (bytes > most) most = bytes, largest = file;
  }
  if (largest.empty()) return {};
  const std::uint64_t type = type_of(largest);
  if (type != kLustre && type != kBeegfs) return {};
  const std::string folder = fs::path(largest).parent_path().string();
  const char* const name = type == kLustre ? "Lustre" : "BeeGFS";
  if (most > kLargeFile)
    lines.push_back(fmt::format(
        "{} has {:.1f} GB and lies on {}, where one server holds a file unless it is striped. {} If that is "
        "1 (the usual "
        "default), stripe the folder and copy the file into it anew: {}",
        largest, static_cast<double>(most) * 1e-9, name,
        type == kLustre ? fmt::format("`lfs getstripe -c {}` says over how many.", largest)
                        : fmt::format("`beegfs-ctl --getentryinfo {}` says over how many.", largest),
        type == kLustre ? fmt::format("lfs setstripe -c 8 -S 4M {}", folder)
                        : fmt::format("beegfs-ctl --setpattern --numtargets=8 --chunksize=4m {}", folder)));
  if (files.size() >= kManyFiles && static_cast<double>(all) < kSmallFile * static_cast<double>(files.size()))
    lines.push_back(fmt::format(
        "{} files of {:.0f} kB on average lie on {}, where opening a file takes longer than reading so "
        "little: "
        "`lockstep convert` packs them into few files, or data.stage_to copies them to a disk of each node.",
        files.size(), static_cast<double>(all) * 1e-3 / static_cast<double>(files.size()), name));
  return lines;
}

}  // namespace lockstep
