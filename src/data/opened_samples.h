// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The samples of one reader between the opening of its files and the reading of their values. A stage takes
// them and gives others: chained() joins the samples of several readers one after the other
// (sample_chain.h), leave_out() takes away bad records (good_samples.h). stored_samples.h is the end: from
// then on nothing changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/block_grid.h"
#include "data/dataset_parts.h"

namespace lockstep {

class OpenedSamples {
 public:
  /// Checks that the parts are consistent, that float features and labels in memory are finite, and that mean
  /// and std match the channels. Throws Error(data).
  explicit OpenedSamples(DatasetParts parts);

  std::int64_t size() const { return parts_.size; }
  /// All that the reader gave but the origin, with both steps and the kind of labels.
  const DatasetParts& parts() const { return parts_; }
  const std::shared_ptr<const SampleOrigin>& origin() const { return origin_; }
  const std::string& source() const { return origin_->source; }
  /// The origin of a sample: "digits.csv.gz, line 17".
  std::string where(std::int64_t sample) const { return origin_->where(sample); }
  const std::shared_ptr<SampleChecks>& checks() const { return checks_; }

  /// The reader gave a store, and its options are kStoreOptions (reader_options.h), too.
  bool has_store() const { return parts_.store != nullptr; }
  /// The reader has read all records: there are no other bad ones than parts().bad.
  bool knows_bad_records() const { return !has_store() || parts_.knows_bad; }
  /// Blocks of this many samples; 0: as the form of the samples suggests.
  BlockGrid grid(std::int64_t block_samples) const;

  bool in_memory() const { return values_.features != nullptr; }
  /// Needs in_memory().
  SampleValues values_at(std::int64_t sample) const {
    SampleValues values{.features = static_cast<const char*>(values_.features) +
                                    static_cast<std::size_t>(sample * parts_.feature_step) *
                                        size_in_bytes(parts_.feature_dtype)};
    if (values_.label_indices != nullptr)
      values.label_indices = values_.label_indices + sample * parts_.label_step;
    if (values_.label_rows != nullptr) values.label_rows = values_.label_rows + sample * parts_.label_step;
    return values;
  }
  /// Of samples without a store (dataset_fingerprint.h); with one it is empty.
  const std::string& fingerprint() const { return fingerprint_; }

  /// Names the classes of samples whose reader does not.
  void name_classes(std::vector<std::string> names);
  /// From now on the values are those at `values`, which live as long as `owner`: the reader's own memory is
  /// given back.
  void keep_values_at(const SampleRoom& values, std::shared_ptr<const void> owner);
  /// The values are in memory that processes share.
  bool are_values_shared() const { return owner_ != nullptr; }
  /// Gives back the reader's own memory: the store reads the values again.
  void forget_values();
  /// The parts, without origin.
  DatasetParts take_parts() &&;

 private:
  void find_values();

  DatasetParts parts_;
  std::shared_ptr<const SampleOrigin> origin_;
  std::shared_ptr<SampleChecks> checks_;
  SampleRoom values_;                  ///< null: not in memory
  std::shared_ptr<const void> owner_;  ///< of their memory, if it is not that of `parts_`
  std::string fingerprint_;
};

}  // namespace lockstep
