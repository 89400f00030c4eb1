// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers: samples that are records of files, one each, at places that are known. A reader
// says how the bytes of a record become a sample.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"
#include "core/range.h"
#include "data/block_grid.h"
#include "data/dataset_parts.h"
#include "data/kept_index.h"
#include "data/sample_store.h"
#include "io/byte_source.h"

namespace lockstep {

/// Where the records of a file lie.
struct RecordFile {
  std::shared_ptr<ByteSource> source;
  std::int64_t count = 0;
  /// The first byte of each record, and the end of the last one; empty: record i has the `record_bytes` from
  /// first_byte + i * hop_bytes on.
  std::vector<std::int64_t> begins;
  std::int64_t first_byte = 0, hop_bytes = 0, record_bytes = 0;
  const char* word = "record";    ///< for messages
  std::int64_t first_number = 0;  ///< of the first record, in messages

  std::int64_t begin(std::int64_t record) const {
    return begins.empty() ? first_byte + record * hop_bytes : begins[static_cast<std::size_t>(record)];
  }
  std::int64_t end(std::int64_t record) const {
    return begins.empty() ? begin(record) + record_bytes : begins[static_cast<std::size_t>(record) + 1];
  }
  /// "x.tfrecord, record 17"
  std::string where(std::int64_t record) const;
};

class RecordStore : public SampleStore {
 public:
  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) final;
  bool has_random_access() const final;

 protected:
  /// `rows`: of each file, those that are samples.
  RecordStore(std::vector<RecordFile> files, const std::vector<RowRange>& rows, std::int64_t feature_bytes,
              std::int64_t label_columns);

  /// Turns a record into a sample. Any thread. Throws Error(data) whose place is where within the record, or
  /// empty; the file and the record are put in front of it.
  virtual void decode(std::string_view record, const SampleRoom& to) const = 0;

 private:
  struct Part {
    RecordFile file;
    RowRange rows;
  };
  void read_part(const Part& part, std::int64_t record, std::int64_t count, const SampleRoom& to) const;

  std::vector<Part> parts_;
  std::vector<std::int64_t> first_sample_;  ///< of each part
  const std::int64_t feature_bytes_, label_columns_;
};

/// Calls use(record, bytes) with these records, which are read in pieces.
void for_each_record(const RecordFile& file, const RowRange& records,
                     FunctionRef<void(std::int64_t record, std::string_view bytes)> use);

/// The classes of labels that are texts: those of the rows `ranges` of all files, sorted by their bytes.
/// label_of(record) returns the text of the label; a record about which it throws Error(data) is passed over
/// if `skips_bad`. What is found is kept: `what` is the kind and all on which it depends, but the files.
std::vector<std::string> record_classes(std::string_view what, const std::vector<std::string>& paths,
                                        const std::vector<RecordFile>& files,
                                        const std::vector<RowRange>& ranges, bool skips_bad,
                                        FunctionRef<std::string(std::string_view record)> label_of);

/// Where the records of file i of `kept` begin, as RecordFile::begins: as it was kept, or as find(source)
/// finds it, which then is kept unless the source is unpacked. Threads call it for different files.
std::vector<std::int64_t> kept_begins(KeptIndex& kept, std::size_t i, ByteSource& source,
                                      FunctionRef<std::vector<std::int64_t>(ByteSource& source)> find);

/// Reads bytes that are several records. An error names the first record that cannot be read, and the byte.
/// `record_bytes(i)`: the range of bytes of record i of `count`; `where(i)`: "x.bin, record 17".
void read_records(ByteSource& source, std::int64_t begin, void* to, std::size_t bytes, std::int64_t count,
                  FunctionRef<Range(std::int64_t i)> record_bytes,
                  FunctionRef<std::string(std::int64_t i)> where);

/// The rows of each of several files that are among `rows` of all of them (null: all), and the samples and
/// their origin in `parts`, whose source and record_word are there. Throws Error(data).
std::vector<RowRange> chosen_rows(DatasetParts& parts, const std::vector<std::string>& paths,
                                  const std::vector<RecordFile>& files, const std::optional<RowRange>& rows);

}  // namespace lockstep
