// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: an owned file descriptor, and the Error for failed system calls.
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
  /// Closes and returns the result of close(2): some file systems report a write error only here.
  int close();

 private:
  int value_ = -1;
};

/// Creates the error "path: cannot <action>: <text of errno `code`>", with advice for common codes.
Error file_error(ErrorKind kind, std::string_view action, const std::string& path, int code);

}  // namespace lockstep
