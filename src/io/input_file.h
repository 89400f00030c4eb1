// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: bytes and lines of a file that may be gzip. The first bytes decide, not the file name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A regular file, read once from its start. Every failure is an Error(data) with the file's name.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  /// As it lies on the disk.
  std::int64_t file_bytes() const { return file_bytes_; }
  /// An upper bound of the unpacked size. Readers check the sizes in headers against it before they allocate
  /// memory.
  std::int64_t max_bytes() const;
  /// Reads up to `bytes`; returns fewer only at the end. A truncated or damaged gzip stream throws.
  std::size_t read(void* data, std::size_t bytes);
  /// Returns false if fewer bytes are left; `data` then contains those.
  bool read_exactly(void* data, std::size_t bytes) { return read(data, bytes) == bytes; }
  /// Skips `bytes`; returns false if fewer are left.
  bool skip(std::int64_t bytes);

 private:
  struct Stream;
  std::string path_;
  std::int64_t file_bytes_ = 0;
  std::unique_ptr<Stream> stream_;
};

/// What ends a line: "\n" and "\r\n", or also a "\r" alone, as in files of old spreadsheets.
enum class LineEnds { newline, any };

/// The first line of a text.
struct LineCut {
  std::size_t length;  ///< of the line without its end
  std::size_t next;    ///< where the next one begins, or the size of the text
};
/// Without a "\r", lines end alike, and LineEnds::newline takes less time.
inline bool has_return(std::string_view text) { return text.find('\r') != std::string_view::npos; }
/// The line has no end in the first `searched` bytes.
LineCut cut_line_of_any_end(std::string_view text, std::size_t searched);
inline LineCut cut_line(std::string_view text, LineEnds ends, std::size_t searched = 0) {
  if (ends == LineEnds::any) return cut_line_of_any_end(text, searched);
  const std::size_t at = text.find('\n', searched);
  if (at == std::string_view::npos) return {text.size() - (text.ends_with('\r') ? 1 : 0), text.size()};
  return {at > 0 && text[at - 1] == '\r' ? at - 1 : at, at + 1};
}

/// The lines of a text file without their ends. Skips a UTF-8 byte order mark. A line that is longer than an
/// InputBudget allows is an Error(data).
class LineReader {
 public:
  explicit LineReader(InputFile& file, LineEnds ends = LineEnds::newline);
  /// What is read of the file and not yet given as lines.
  std::string_view ahead() const { return {block_.data() + first_, last_ - first_}; }
  /// That is up to the end of the file.
  bool ahead_is_all() const { return at_end_; }
  /// Sets `line` to the next line, which is valid until the next call. Returns false at the end; a final "\n"
  /// does not begin another line.
  bool next(std::string_view& line);
  /// The number of the last line, from 1.
  std::int64_t line_number() const { return line_number_; }
  /// Its first byte, and that of the next line, among all bytes of the file.
  std::int64_t line_begin() const { return line_begin_; }
  std::int64_t line_end() const { return block_begin_ + static_cast<std::int64_t>(first_); }

 private:
  void fill();

  InputFile& file_;
  const LineEnds ends_;
  std::vector<char> block_;
  std::size_t first_ = 0, last_ = 0;  ///< unread bytes are block_[first_, last_)
  bool at_end_ = false;
  bool has_returns_ = false;  ///< with LineEnds::any: the block has a "\r", or one before it had
  std::int64_t line_number_ = 0;
  std::int64_t block_begin_ = 0;  ///< the byte of the file that is block_[0]
  std::int64_t line_begin_ = 0;
};

}  // namespace lockstep
