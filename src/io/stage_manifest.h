// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which pieces of which files a folder has copies of, so that a job that begins again copies only what is
// missing. Each rank of the node appends to a file of its own, pieces.R:
//
//   lockstep-stage 1 <boot id>
//   <name of the copy> <bytes> <time of change, ns> <device> <inode> <offset> <bytes of the piece> <CRC32C>
//
// A line is written when its piece is; a torn last line does not count. Copies are not flushed to the disk,
// so nothing counts that was written before the node started.
//
// The boot id takes the place of flushing each file: after a crash of the node everything is copied again,
// and a million small files cost no million flushes. A killed job loses at most the pieces in work.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "io/file_descriptor.h"

namespace lockstep {

/// What a file was when it was looked at. Ranks exchange it as bytes.
struct FileOrigin {
  std::int64_t bytes = 0, changed_ns = 0;
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const FileOrigin&, const FileOrigin&) = default;
};
/// Throws Error(data) unless `path` is a regular file that can be read.
FileOrigin origin_of_file(const std::string& path);

/// The pieces that are known to be copied.
class StagedPieces {
 public:
  /// All lines of all ranks; lines that are damaged do not count. Throws Error(data) if a file cannot be
  /// read.
  explicit StagedPieces(const std::string& folder);
  /// The checksum of a piece that was copied from a file of this origin; none if it was not.
  std::optional<std::uint32_t> checksum(const std::string& name, const FileOrigin& origin,
                                        std::int64_t offset, std::int64_t bytes) const;
  bool knows(const std::string& name, const FileOrigin& origin) const;
  bool empty() const { return files_.empty(); }

 private:
  void add(std::string_view line);
  struct Piece {
    std::int64_t bytes;
    std::uint32_t checksum;
  };
  struct File {
    FileOrigin origin;
    std::map<std::int64_t, Piece> pieces;  ///< by offset
  };
  std::map<std::string, File, std::less<>> files_;
};

/// The lines of one rank.
class StageManifest {
 public:
  StageManifest(const std::string& folder, int local_rank);
  /// Any thread. Throws Error(data).
  void add(const std::string& name, const FileOrigin& origin, std::int64_t offset, std::int64_t bytes,
           std::uint32_t checksum);

 private:
  std::string path_;
  FileDescriptor file_;
  std::mutex mutex_;
};

}  // namespace lockstep
