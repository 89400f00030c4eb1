// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Records of files, one after the other, for programs that make their own use of them: TFRecord files,
// records of a fixed length, lines of text, whole files.
//
//     TfrecordReader reader(paths);
//     try {
//       for (;;) {
//         const Record record = reader.read();
//         ...
//       }
//     } catch (const EndOfInput&) {      // or: while (const auto record = reader.next())
//     }
//
// A reader belongs to one thread. Keys say where a record is from: "a.tfrecord:17", records from 0; the
// file's path alone for whole files. Damage is an Error(data) that names file and record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/fixed_length_records.h"

namespace lockstep {

class ByteSource;

struct Record {
  std::string key;
  std::string value;
};

class RecordReader {
 public:
  virtual ~RecordReader();
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  /// The next record; nothing at the end of the last file, then and later.
  std::optional<Record> next();
  /// next() for queues and services: throws EndOfInput at the end.
  Record read();
  /// Up to `count` records, fewer only at the end.
  std::vector<Record> read_up_to(std::int64_t count);
  /// Records that were read.
  std::int64_t num_records() const { return num_records_; }
  /// Begins again with the first file.
  void reset();

 protected:
  /// Reads the files in this order; at least one. None is opened yet.
  explicit RecordReader(std::vector<std::string> paths);
  /// Opens a file, as the format needs it.
  virtual std::shared_ptr<ByteSource> open(const std::string& path);
  /// Sets `value` to record `index` of the open file, which begins at byte `at`, and moves `at` after it.
  /// False: the file has no more.
  virtual bool read_record(ByteSource& file, std::int64_t index, std::int64_t& at, std::string& value) = 0;
  virtual std::string key(const std::string& path, std::int64_t index) const;

 private:
  const std::vector<std::string> paths_;
  std::size_t next_file_ = 0;
  std::shared_ptr<ByteSource> file_;
  std::int64_t index_ = 0, at_ = 0;
  std::int64_t num_records_ = 0;
};

/// Plain, gzip or zlib: the first bytes decide. Both checksums of each record are verified.
class TfrecordReader final : public RecordReader {
 public:
  explicit TfrecordReader(std::vector<std::string> paths) : RecordReader(std::move(paths)) {}

 private:
  std::shared_ptr<ByteSource> open(const std::string& path) override;
  bool read_record(ByteSource& file, std::int64_t index, std::int64_t& at, std::string& value) override;
};

/// Plain or gzip.
class FixedLengthRecordReader final : public RecordReader {
 public:
  /// Throws Error(config) for lengths that are not positive.
  FixedLengthRecordReader(std::vector<std::string> paths, const FixedLengthRecords& form);

 private:
  bool read_record(ByteSource& file, std::int64_t index, std::int64_t& at, std::string& value) override;

  const FixedLengthRecords form_;
  std::int64_t records_ = 0;  ///< of the open file
};

/// Lines without "\n" or "\r\n"; plain or gzip.
class TextLineReader final : public RecordReader {
 public:
  explicit TextLineReader(std::vector<std::string> paths, std::int64_t skip_header_lines = 0)
      : RecordReader(std::move(paths)), skip_(skip_header_lines) {}

 private:
  bool read_record(ByteSource& file, std::int64_t index, std::int64_t& at, std::string& value) override;
  bool read_line(ByteSource& file, std::int64_t& at, std::string& line);

  const std::int64_t skip_;
  std::string block_;
  std::int64_t block_begin_ = 0;
};

/// One record per file: its bytes as they are.
class WholeFileReader final : public RecordReader {
 public:
  explicit WholeFileReader(std::vector<std::string> paths) : RecordReader(std::move(paths)) {}

 private:
  std::shared_ptr<ByteSource> open(const std::string& path) override;
  bool read_record(ByteSource& file, std::int64_t index, std::int64_t& at, std::string& value) override;
  std::string key(const std::string& path, std::int64_t index) const override;
};

}  // namespace lockstep
