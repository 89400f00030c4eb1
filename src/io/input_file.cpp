// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/input_file.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "io/input_budget.h"
#include "io/staged_files.h"
#include "io/text_bytes.h"

namespace lockstep {

namespace {

constexpr unsigned kGzipBufferBytes = 1U << 17;
constexpr std::size_t kLineBlockBytes = std::size_t{1} << 18;
/// The maximum compression ratio of deflate (zlib.net/zlib_tech.html).
constexpr std::int64_t kMaxGzipRatio = 1032;

std::string errno_text(int code) { return code == 0 ? "unknown reason" : std::strerror(code); }

}  // namespace

struct InputFile::Stream {
  gzFile file = nullptr;
  ~Stream() {
    if (file != nullptr) gzclose_r(file);  // read only: no data can be lost
  }
};

InputFile::InputFile(std::string path) : path_(std::move(path)), stream_(std::make_unique<Stream>()) {
  const std::string opened = path_to_open(path_);
  struct stat status {};
  if (::stat(opened.c_str(), &status) != 0)
    throw Error(ErrorKind::data, fmt::format("cannot open{}: {}", staged_note(path_), errno_text(errno)),
                path_, "Check that the file exists and that the path is spelled right.");
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorKind::data, "is not a regular file", path_,
                "Give the path of a file, not of a folder or device.");
  file_bytes_ = status.st_size;
  errno = 0;
  stream_->file = gzopen(opened.c_str(), "rb");
  if (stream_->file == nullptr)
    throw Error(ErrorKind::data, fmt::format("cannot open: {}", errno_text(errno)), path_,
                "Check the file's permissions.");
  if (gzbuffer(stream_->file, kGzipBufferBytes) != 0)
    throw Error(ErrorKind::data, "cannot read: no memory for a buffer", path_);
}

InputFile::~InputFile() = default;

std::int64_t InputFile::max_bytes() const {
  return gzdirect(stream_->file) != 0 ? file_bytes_ : (file_bytes_ + 1) * kMaxGzipRatio;
}

std::size_t InputFile::read(void* data, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<unsigned>(std::min<std::size_t>(bytes - done, std::size_t{1} << 30));
    errno = 0;
    const int got = gzread(stream_->file, static_cast<char*>(data) + done, wanted);
    const int errno_now = errno;
    int code = Z_OK;
    const char* const text = gzerror(stream_->file, &code);
    if (code == Z_BUF_ERROR)
      throw Error(ErrorKind::data, "the gzip stream ends early: the file may be truncated", path_,
                  "Copy or download the file again; `gzip -t` checks it.");
    if (got < 0)
      throw Error(ErrorKind::data,
                  fmt::format("cannot read: {}", code == Z_ERRNO ? errno_text(errno_now) : text), path_,
                  "The file may be damaged; `gzip -t` checks a compressed one.");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

bool InputFile::skip(std::int64_t bytes) {
  std::array<char, 65536> block;
  while (bytes > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(bytes, std::int64_t{block.size()}));
    if (!read_exactly(block.data(), wanted)) return false;
    bytes -= static_cast<std::int64_t>(wanted);
  }
  return true;
}

LineReader::LineReader(InputFile& file, LineEnds ends) : file_(file), ends_(ends), block_(kLineBlockBytes) {
  fill();
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  const std::string_view begin(block_.data(), last_);
  if (begin.starts_with(byte_order_mark)) first_ = byte_order_mark.size();
  refuse_no_text(begin, file.path());
}

/// Moves the unread bytes to the front and reads more after them. A line longer than the block doubles the
/// block.
void LineReader::fill() {
  std::copy(block_.begin() + static_cast<std::ptrdiff_t>(first_),
            block_.begin() + static_cast<std::ptrdiff_t>(last_), block_.begin());
  last_ -= first_;
  block_begin_ += static_cast<std::int64_t>(first_);
  first_ = 0;
  if (last_ == block_.size()) {
    // A small gzip file unpacks to a line of any length.
    const auto file_bytes = static_cast<std::uint64_t>(file_.file_bytes());
    const std::uint64_t most = InputBudget::limit_of(file_bytes);
    if (block_.size() >= most)
      throw Error(ErrorKind::data,
                  fmt::format("line {} is longer than {} bytes, the limit for a file of {} bytes",
                              line_number_ + 1, most, file_bytes),
                  file_.path(), "The file may be damaged, or made to harm. Unpack it, if it is right.");
    block_.resize(std::min<std::size_t>(2 * block_.size(), most));
  }
  const std::size_t room = block_.size() - last_;
  const std::size_t got = file_.read(block_.data() + last_, room);
  at_end_ = got < room;
  if (ends_ == LineEnds::any && !has_returns_) has_returns_ = has_return({block_.data() + last_, got});
  last_ += got;
}

LineCut cut_line_of_any_end(std::string_view text, std::size_t searched) {
  std::size_t at = std::string_view::npos;
  // Both are looked for in pieces: of a file with one kind, each line would be a search for the other kind.
  constexpr std::size_t kPiece = 4096;
  for (; at == std::string_view::npos && searched < text.size(); searched += kPiece) {
    const std::string_view piece = text.substr(searched, kPiece);
    const std::size_t newline = std::min(piece.find('\n'), piece.size());
    const std::size_t end = std::min(piece.substr(0, newline).find('\r'), newline);
    if (end < piece.size()) at = searched + end;
  }
  if (at == std::string_view::npos) return {text.size(), text.size()};
  if (text[at] == '\r') return {at, at + (text.substr(at + 1).starts_with('\n') ? 2 : 1)};
  return {at > 0 && text[at - 1] == '\r' ? at - 1 : at, at + 1};
}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = 0;
  if (!has_returns_) {  // the usual case, of which tables have millions
    const char* const begin = block_.data() + first_;
    const void* const found = std::memchr(begin, '\n', last_ - first_);
    if (found != nullptr) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - begin);
      line_begin_ = line_end();
      first_ += length + 1;
      line = {begin, length > 0 && begin[length - 1] == '\r' ? length - 1 : length};
      ++line_number_;
      return true;
    }
    searched = last_ - first_;
  }
  for (;;) {
    const std::string_view unread = ahead();
    const LineCut cut = cut_line(unread, has_returns_ ? LineEnds::any : LineEnds::newline, searched);
    if (cut.next == unread.size() && !unread.ends_with('\n') && !at_end_) {
      searched = cut.length;  // the line goes on, or "\n" follows its "\r"
      fill();
      continue;
    }
    if (unread.empty()) return false;
    line_begin_ = line_end();
    first_ += cut.next;
    line = unread.substr(0, cut.length);
    ++line_number_;
    return true;
  }
}

}  // namespace lockstep
