// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Between the opening of the files of a set and the reading of its samples: bad records are found there, by
// one process or by all ranks together, and left out of all inputs and targets alike.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/bad_records.h"
#include "data/data_options.h"
#include "data/opened_samples.h"
#include "data/sample_description.h"
#include "data/used_dataset.h"

namespace lockstep {

class ReaderDataset;

class OpenedSets {
 public:
  /// One of sets_of(options).
  struct Set {
    std::string name;  ///< DataInput::name
    OpenedSamples data;
    BadRecordOptions bad_records;
    int threads = 1;                  ///< that read it
    std::vector<BadRecord> bad = {};  ///< ascending
    /// Its bad records are unknown: look for them with a BadRecordScan.
    bool to_scan() const { return bad_records.skip && !data.knows_bad_records(); }
    /// The bad records of the reader and those that were found.
    void take(std::vector<BadRecord> found);
    std::int64_t most() const { return bad_records.most(data.size()); }
  };

  /// Opens the files of the training or the evaluation set, all inputs and targets. `trained`: the training
  /// set, if the evaluation set is to be read without its files: with its words, classes and lists; null:
  /// they are read from the files of the training set. Throws Error.
  OpenedSets(const DataOptions& options, bool evaluation, const std::string& base_directory,
             const Dataset* trained = nullptr);
  /// A training set as it was described, with one sample of zeros. Opens no file. Needs
  /// description.fits(options).
  OpenedSets(const DataOptions& options, const SampleDescription& description,
             const std::string& base_directory);

  bool is_evaluation() const { return evaluation_; }
  /// As sets_of(options). Those that to_scan() need their `bad`.
  std::vector<Set>& sets() { return sets_; }
  /// Bad records of any set are skipped.
  bool skips() const;
  /// Finds the bad records of all sets in this process.
  void find_bad();
  /// Leaves the bad records out of all sets; finish() does it otherwise.
  void leave_out_bad();
  /// The bytes of a set that processes may share (values_in_memory.h); 0: it is not kept in memory.
  /// After leave_out_bad().
  std::int64_t bytes_to_share(std::size_t set, const DatasetUse& use) const;
  /// The set that is used. Reads it into memory, or prepares it for being read while it is used.
  UsedDataset finish(const DatasetUse& use) &&;

 private:
  OpenedSamples chained_sources(const std::string& base_directory);
  ReaderDataset finished_set(std::size_t set, const DatasetUse& use);

  const DataOptions* options_;
  bool evaluation_;
  bool described_ = false;  ///< there are no samples
  bool left_out_ = false;   ///< leave_out_bad() was called
  std::string base_directory_;
  std::vector<Set> sets_;
  /// By set: the words that transforms take instead of those of their files; null: none.
  std::vector<std::shared_ptr<const TextInfo>> texts_;
  std::vector<std::int64_t> source_ends_;  ///< of DataOptions::sources: the sample after the last one of each
};

/// Some input or target of the training or evaluation set skips bad records.
bool skips_bad_records(const DataOptions& options);

}  // namespace lockstep
