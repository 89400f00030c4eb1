// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: bytes and lines of a file that may be gzip. Which of the two it is, its first bytes say, not
// its name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A regular file, read once from its start. Every failure is Error(data) with the file's name.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  /// The most bytes that it can unpack to: what a header claims is checked against it before memory is taken.
  std::int64_t max_bytes() const;
  /// Reads up to `bytes`; fewer only at the end. A gzip stream that is cut off or damaged throws.
  std::size_t read(void* data, std::size_t bytes);
  /// False, with what there was in `data`, if fewer bytes are left.
  bool read_exactly(void* data, std::size_t bytes) { return read(data, bytes) == bytes; }
  /// Passes over `bytes`; false if there are fewer.
  bool skip(std::int64_t bytes);

 private:
  struct Stream;
  std::string path_;
  std::int64_t file_bytes_ = 0;
  std::unique_ptr<Stream> stream_;
};

/// The lines of a text file, without "\n" or "\r\n". A byte order mark of UTF-8 is passed over.
class LineReader {
 public:
  explicit LineReader(InputFile& file);
  /// The next line; valid until the next call. False at the end: a file's last "\n" begins no further line.
  bool next(std::string_view& line);
  /// Of the line that next() gave last, from 1.
  std::int64_t line_number() const { return line_number_; }

 private:
  void fill();

  InputFile& file_;
  std::vector<char> block_;
  std::size_t first_ = 0, last_ = 0;  ///< what is unread lies in block_[first_, last_)
  bool at_end_ = false;
  std::int64_t line_number_ = 0;
};

}  // namespace lockstep
