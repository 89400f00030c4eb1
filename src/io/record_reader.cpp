// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/end_of_input.h"
#include "core/error.h"
#include "io/byte_source.h"
#include "io/tfrecord_file.h"

namespace lockstep {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

}  // namespace

RecordReader::RecordReader(std::vector<std::string> paths) : paths_(std::move(paths)) {
  LOCKSTEP_REQUIRE(!paths_.empty(), ErrorKind::config, "a reader of records needs at least one file");
}
RecordReader::~RecordReader() = default;

std::shared_ptr<ByteSource> RecordReader::open(const std::string& path) { return plain_or_gzip_bytes(path); }

std::string RecordReader::key(const std::string& path, std::int64_t index) const {
  return fmt::format("{}:{}", path, index);
}

std::optional<Record> RecordReader::next() {
  for (;;) {
    if (file_ == nullptr) {
      if (next_file_ == paths_.size()) return std::nullopt;
      file_ = open(paths_[next_file_]);
      index_ = at_ = 0;
    }
    Record record;
    if (read_record(*file_, index_, at_, record.value)) {
      record.key = key(paths_[next_file_], index_++);
      ++num_records_;
      return record;
    }
    file_ = nullptr;
    ++next_file_;
  }
}

Record RecordReader::read() {
  std::optional<Record> record = next();
  if (!record) throw EndOfInput(paths_.back());
  return *std::move(record);
}

std::vector<Record> RecordReader::read_up_to(std::int64_t count) {
  std::vector<Record> records;
  while (static_cast<std::int64_t>(records.size()) < count) {
    std::optional<Record> record = next();
    if (!record) break;
    records.push_back(*std::move(record));
  }
  return records;
}

void RecordReader::reset() {
  file_ = nullptr;
  next_file_ = 0;
  num_records_ = 0;
}

std::shared_ptr<ByteSource> TfrecordReader::open(const std::string& path) {
  return open_tfrecord_file(path, TfrecordCompression::automatic);
}

bool TfrecordReader::read_record(ByteSource& file, std::int64_t index, std::int64_t& at, std::string& value) {
  std::array<char, kTfrecordHeaderBytes> header{};
  const std::size_t got = file.read_some(at, header.data(), header.size());
  if (got == 0) return false;
  try {
    if (got < header.size()) throw Error(ErrorKind::data, "the file ends within a record: truncated?");
    const std::int64_t length = tfrecord_length(header.data());
    if (length > file.max_bytes() - at)
      throw Error(ErrorKind::data,
                  fmt::format("a record of {} bytes ends after the file: truncated?", length));
    const auto frame = static_cast<std::size_t>(kTfrecordHeaderBytes + length + kTfrecordFooterBytes);
    value.resize(frame);
    std::ranges::copy(header, value.begin());
    if (file.read_some(at + kTfrecordHeaderBytes, value.data() + header.size(), frame - header.size()) <
        frame - header.size())
      throw Error(ErrorKind::data, "the file ends within a record: truncated?");
    tfrecord_data(value);
    value.erase(frame - kTfrecordFooterBytes);
    value.erase(0, header.size());
    at += static_cast<std::int64_t>(frame);
    return true;
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(ErrorKind::data, error.what_happened(),
                fmt::format("{}, record {}, byte {}", file.where(), index, at),
                "Copy or make the file again.");
  }
}

FixedLengthRecordReader::FixedLengthRecordReader(std::vector<std::string> paths,
                                                 const FixedLengthRecords& form)
    : RecordReader(std::move(paths)), form_(form) {
  LOCKSTEP_REQUIRE(
      form_.record_bytes > 0 && form_.hop_bytes >= 0 && form_.header_bytes >= 0 && form_.footer_bytes >= 0,
      ErrorKind::config, "records of a fixed length need record_bytes above 0");
}

bool FixedLengthRecordReader::read_record(ByteSource& file, std::int64_t index, std::int64_t& at,
                                          std::string& value) {
  if (index == 0) records_ = count_records(file, form_);
  if (index == records_) return false;
  at = form_.begin(index);
  value.resize(static_cast<std::size_t>(form_.record_bytes));
  file.read(at, value.data(), value.size());
  return true;
}

bool TextLineReader::read_line(ByteSource& file, std::int64_t& at, std::string& line) {
  line.clear();
  for (;;) {
    const std::int64_t offset = at - block_begin_;
    if (offset < 0 || offset >= static_cast<std::int64_t>(block_.size())) {
      block_.resize(kBlockBytes);
      block_.resize(file.read_some(at, block_.data(), block_.size()));
      block_begin_ = at;
      if (block_.empty()) {
        if (line.empty()) return false;
        break;
      }
      continue;
    }
    const auto begin = static_cast<std::size_t>(offset);
    const std::size_t end = block_.find('\n', begin);
    line.append(block_, begin, end == std::string::npos ? end : end - begin);
    if (end != std::string::npos) {
      at = block_begin_ + static_cast<std::int64_t>(end) + 1;
      break;
    }
    at = block_begin_ + static_cast<std::int64_t>(block_.size());
  }
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

bool TextLineReader::read_record(ByteSource& file, std::int64_t index, std::int64_t& at, std::string& value) {
  if (index == 0) {
    block_.clear();
    for (std::int64_t line = 0; line < skip_; ++line)
      if (!read_line(file, at, value)) return false;
  }
  return read_line(file, at, value);
}

std::shared_ptr<ByteSource> WholeFileReader::open(const std::string& path) { return file_bytes(path); }

bool WholeFileReader::read_record(ByteSource& file, std::int64_t index, std::int64_t&, std::string& value) {
  if (index > 0) return false;
  value.resize(static_cast<std::size_t>(exact_bytes(file)));
  file.read(0, value.data(), value.size());
  return true;
}

std::string WholeFileReader::key(const std::string& path, std::int64_t) const { return path; }

}  // namespace lockstep
