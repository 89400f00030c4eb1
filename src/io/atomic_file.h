// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files that are either the old ones or the new ones, never half: write to a temporary name in the same
// folder, flush to the disk, rename, flush the folder. Used by checkpoints, the state file and metrics.jsonl.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace lockstep {

/// The temporary name that belongs to `path`: same folder, ".<name>.tmp-<host>-<pid>".
std::string temporary_name(const std::string& path);
/// True for a file name (without folder) that temporary_name() made: what a killed run may have left behind.
bool is_temporary_name(std::string_view file_name);

/// Removes the file at the end of the scope unless kept.
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
/// the temporary is removed and Error(kind) says which call failed and why.
void publish_file(const std::string& temporary, const std::string& path, ErrorKind kind);

/// Makes new, renamed and removed names in `folder` durable. Throws Error(kind).
void flush_folder(const std::string& folder, ErrorKind kind);

/// Bytes that an ordinary user may still write in `folder`; SIZE_MAX if it cannot be told.
std::size_t free_bytes(const std::string& folder);

/// Replaces `path` with `text`, atomically. Throws Error(kind); the old file is then untouched.
void write_file_atomically(const std::string& path, std::string_view text,
                           ErrorKind kind = ErrorKind::config);

/// The whole file as text. Throws Error(kind).
std::string read_whole_file(const std::string& path, ErrorKind kind = ErrorKind::config);

/// write(2) until all is written or an error occurs; retries after EINTR. False with errno set on failure.
bool write_fully(int descriptor, const void* data, std::size_t bytes);

}  // namespace lockstep
