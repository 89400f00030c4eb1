// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a file of another program may ask for. Formats that refer to one thing several times, or compress it,
// let a small file ask for any amount of memory and time.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

class InputBudget {
 public:
  /// Any file may ask for this much memory, and in addition for this multiple of its size.
  static constexpr std::uint64_t kFreeBytes = std::uint64_t{256} << 20, kTimesFile = 32;
  /// Objects, links and entries that are looked at.
  static constexpr std::uint64_t kMostVisits = 200'000;

  /// `path` is for messages.
  InputBudget(std::string path, std::uint64_t file_bytes) : path_(std::move(path)), file_bytes_(file_bytes) {}

  /// What a file of so many bytes may ask for.
  static std::uint64_t limit_of(std::uint64_t file_bytes);

  /// The file is this much larger: it has its values in further files.
  void add_file(std::uint64_t bytes) { file_bytes_ += bytes; }
  /// Throws Error(data) if all bytes that were taken are more than the limit.
  void take(std::uint64_t bytes) {
    if (__builtin_add_overflow(taken_, bytes, &taken_) || taken_ > limit()) fail_bytes();
  }
  /// Throws Error(data) if so many bytes more, for a while, would be beyond the limit.
  void require(std::uint64_t bytes) {
    std::uint64_t most = 0;
    if (__builtin_add_overflow(taken_, bytes, &most) || most > limit()) fail_bytes();
  }
  /// Throws Error(data) at more than kMostVisits.
  void visit() {
    if (++visits_ > kMostVisits) fail_visits();
  }

 private:
  std::uint64_t limit() const { return limit_of(file_bytes_); }
  [[noreturn]] void fail_bytes() const;
  [[noreturn]] void fail_visits() const;

  const std::string path_;
  std::uint64_t file_bytes_, taken_ = 0, visits_ = 0;
};

}  // namespace lockstep
