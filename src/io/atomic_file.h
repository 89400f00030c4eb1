// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Atomic replacement of files: a file has either its old or its new contents, never a part. A new file is
// written under a temporary name in the same folder, flushed to the disk and renamed; then the folder is
// flushed. Used by checkpoints, the state file and metrics.jsonl.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace lockstep {

/// The temporary name for `path`: same folder, ".<name>.tmp-<host>-<pid>".
std::string temporary_name(const std::string& path);
/// True for a file name (without folder) made by temporary_name(): a killed run may have left such a file.
bool is_temporary_name(std::string_view file_name);

/// Removes the file at the end of the scope unless keep() was called.
class RemoveOnFailure {
 public:
  explicit RemoveOnFailure(std::string path) : path_(std::move(path)) {}
  ~RemoveOnFailure();
  RemoveOnFailure(const RemoveOnFailure&) = delete;
  RemoveOnFailure& operator=(const RemoveOnFailure&) = delete;
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

/// Flushes the finished file `temporary` to the disk, renames it to `path` and flushes the folder. On failure
/// it removes the temporary file and throws Error(kind) that names the failed call and the reason.
void publish_file(const std::string& temporary, const std::string& path, ErrorKind kind);

/// Makes new, renamed and removed entries of `folder` durable. Throws Error(kind).
void flush_folder(const std::string& folder, ErrorKind kind);

/// The folder itself, or the nearest one above it that exists.
std::string existing_folder(const std::string& folder);
/// The bytes that an unprivileged user can still write in `folder`, which need not exist yet; SIZE_MAX if
/// unknown.
std::size_t free_bytes(const std::string& folder);

/// Replaces the contents of `path` with `text`, atomically. Throws Error(kind) and leaves the old file
/// untouched on failure.
void write_file_atomically(const std::string& path, std::string_view text,
                           ErrorKind kind = ErrorKind::config);

/// Reads a whole regular file as text; a FIFO is refused, because it could block. Throws Error(kind).
std::string read_whole_file(const std::string& path, ErrorKind kind = ErrorKind::config);

/// Calls write(2) until everything is written or an error occurs; retries after EINTR. Returns false with
/// errno set on failure.
bool write_fully(int descriptor, const void* data, std::size_t bytes);

}  // namespace lockstep
