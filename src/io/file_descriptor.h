// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: an owned file descriptor, and the Error that a failed system call becomes.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace lockstep {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int value) : value_(value) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  /// Closes and returns close's result: on some file systems a write error comes only here.
  int close();

 private:
  int value_ = -1;
};

/// "path: cannot <action>: <text of errno's `code`>", with advice for the usual ones.
Error file_error(ErrorKind kind, std::string_view action, const std::string& path, int code);

}  // namespace lockstep
