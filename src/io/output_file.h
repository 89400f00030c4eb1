// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The file that a command writes by --output. Every command uses this class, so the rules are the same for
// all of them:
//
//   a free name or a regular file     replaced atomically: the file has its old or its new contents
//   a symbolic link                   its target is replaced; the link stays
//   "-", a FIFO, a character device   written as a stream; nothing is renamed
//   an input of the command           refused; so are folders, block devices and sockets
//
// One process; on rank 0. Bytes of one file come either from append() or through seekable().
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "io/file_descriptor.h"

namespace lockstep {

/// The ending of `path` among `known` (".csv", lower case); any case matches. A stream without a known ending
/// ("-", /dev/fd/63, a FIFO) gets the first one. Throws Error(config) that lists the known ones. For commands
/// that write several formats, or one that a wrong ending would misname.
std::string_view output_ending(const std::string& path, std::span<const std::string_view> known);

/// For an output that nobody has named: throws Error(config) if there is a symbolic link, a FIFO or another
/// thing that is no regular file.
void require_plain_output(const std::string& path);

/// True for standard output ("-", /dev/stdout).
bool is_standard_output(const std::string& path);

class OutputFile {
 public:
  /// Judges `path` and opens it; opening a FIFO waits for its reader. `inputs` are the files that the command
  /// reads. Throws Error(config) for a path that is refused or cannot be opened.
  OutputFile(const std::string& path, std::span<const std::string> inputs);
  /// A regular file keeps its old contents without publish(), and no temporary file is left.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// The path as given; for messages.
  const std::string& path() const { return path_; }
  bool is_stream() const { return is_stream_; }
  /// Writes after what was appended before. Throws Error(output).
  void append(const void* data, std::size_t bytes);
  void append(std::string_view text) { append(text.data(), text.size()); }
  /// The path under which other processes can open the file until publish(); empty for a stream. Called
  /// before seekable().
  std::string shared_path();
  /// An empty file for reading and writing at any position, for formats that need one; publish() copies it
  /// to a stream. Throws Error(config) if the stream is a terminal.
  int seekable();
  /// The contents are complete: renames a regular file, or ends the stream. Throws Error(output).
  void publish();

 private:
  void open_stream(int descriptor);
  void open_file(const std::string& target, std::optional<unsigned> mode);
  void open_named();
  void name_file();
  void append_file(const FileDescriptor& from);

  const std::string path_;
  std::string target_, temporary_;  // of a regular file; temporary_ is empty while it has no name
  bool is_stream_ = false;
  FileDescriptor file_, spool_;
};

/// Writes a whole text by these rules.
void write_output(const std::string& path, std::string_view text, std::span<const std::string> inputs);

}  // namespace lockstep
