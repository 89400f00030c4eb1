// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies pieces of data files into a folder of this node (stage_folder.h). Ranks and threads copy different
// pieces, of different files or of the same one. A copy is complete when all of its pieces are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/stage_manifest.h"

namespace lockstep {

struct StagedFile {
  std::string path, name;  ///< of the file; of its copy (staged_files.h)
  FileOrigin origin = {};
};

/// Bytes [offset, offset + bytes) of a file. An empty file has one piece.
struct StagePiece {
  std::int64_t file, offset, bytes;
};
/// Each file in pieces of 8 MiB; the last one has the rest.
std::vector<StagePiece> stage_pieces(const std::vector<StagedFile>& files);

/// Brings the folder of copies into order before any rank copies: makes its folders, and removes the copies
/// that are not among `files`, or of which nothing is known.
void prepare_stage(const std::string& folder, const std::vector<StagedFile>& files,
                   const StagedPieces& known);

class StageCopier {
 public:
  struct Options {
    std::string folder;
    bool verify = true;             ///< reads again what it has written, and copies that are there already
    std::int64_t bytes_needed = 0;  ///< in the folder, for messages
  };
  /// Both outlive it.
  StageCopier(Options options, const StagedPieces& known, StageManifest& manifest)
      : options_(std::move(options)), known_(known), manifest_(manifest) {}

  /// Returns false if the piece is there already. `buffer` is for the values. Any thread. Throws Error(data)
  /// that names the file: it cannot be read, has changed, or its copy cannot be written or differs.
  bool copy(const StagedFile& file, const StagePiece& piece, std::vector<char>& buffer) const;
  /// Throws Error(data) unless the copy has the bytes of the file.
  void check_size(const StagedFile& file) const;

 private:
  std::string path_of(const StagedFile& file) const { return options_.folder + "/files/" + file.name; }
  bool is_there(const StagedFile& file, const StagePiece& piece, std::vector<char>& buffer) const;
  [[noreturn]] void fail_to_write(const StagedFile& file, int code) const;

  const Options options_;
  const StagedPieces& known_;
  StageManifest& manifest_;
};

/// Throws Error(data) that names `place` and the first file unless `bytes` are free there.
void require_stage_room(const std::string& place, std::int64_t bytes, const std::vector<StagedFile>& files);

}  // namespace lockstep
