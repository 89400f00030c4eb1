// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: rows that are read again after all of them were read once. An index says where
// every sixteenth row begins: half a byte per row.
//
// Why twice: a row may have several lines, and whether labels are class numbers is known only after the last
// row, so all rows are parsed at the start, which also finds mistakes before training. The values stay in
// memory only up to 2^26 (268 MB); beyond that they are dropped while the file is read on, and this store
// parses rows again: by all threads and ranks into the memory that they share, or while they are used. A
// growing list took two to three times the size of the table for a moment. The first pass is one thread of
// each rank; what it finds is kept with the run. gzip has no places to go back to: such a table must fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "data/kept_index.h"
#include "data/readers/csv_columns.h"
#include "data/readers/csv_file.h"
#include "data/sample_store.h"
#include "io/byte_source.h"

namespace lockstep {

/// The lines of the samples. Rows of several lines, and comments, leave gaps.
class CsvLines {
 public:
  struct Place {
    const std::string* path;
    std::int64_t line;
  };
  /// The first sample of a file.
  void begin(const CsvFile& file, std::int64_t sample);
  void add(const CsvFile& file, std::int64_t sample);
  bool has_gaps() const { return has_gaps_; }
  std::size_t memory_bytes() const { return runs_.size() * sizeof(Run); }
  Place place_of(std::int64_t sample) const;
  void write(IndexWriter& writer) const;
  void read(IndexReader& reader);

 private:
  struct Run {
    std::size_t file;
    std::int64_t sample, line;
  };
  std::vector<std::string> paths_;
  std::vector<Run> runs_;
  bool has_gaps_ = false;
};

/// Where the rows of a file are that are samples.
struct CsvRowPlaces {
  std::string path;
  std::int64_t first_line = 0, first_sample = 0;
  std::vector<std::int64_t> begins;  ///< of rows 0, CsvIndex::kStep, 2 kStep, ...
  std::int64_t end = 0;              ///< of the last row
};

/// The files of a set, and where their rows are.
class CsvIndex {
 public:
  static constexpr std::int64_t kStep = 16;  ///< rows
  struct File : CsvRowPlaces {
    CsvRows rows;
  };

  void begin(const CsvFile& file, std::int64_t sample);
  void add(const CsvFile& file, std::int64_t sample);
  /// A file whose places are known.
  void add(CsvRows rows, CsvRowPlaces places);
  std::vector<CsvRowPlaces> places() const { return {files_.begin(), files_.end()}; }
  std::vector<File> files() && { return std::move(files_); }

 private:
  std::vector<File> files_;
};

/// What rows become.
struct CsvForm {
  CsvPlan plan;
  CsvMissing missing;
  bool whole_labels = false;  ///< label_indices, otherwise label_rows
};

/// `samples`: of all files. `plain`: no file is gzip. Otherwise the values must stay in memory, and nothing
/// is read again.
std::shared_ptr<SampleStore> make_csv_store(CsvForm form, CsvIndex index,
                                            std::shared_ptr<const CsvLines> lines, std::int64_t samples,
                                            bool plain);

}  // namespace lockstep
