// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the samples of a data set come from, and what their values must be.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "data/label_demand.h"
#include "data/sample_store.h"

namespace lockstep {

/// One of several files: its samples begin at `first_sample`, with the record `first_record`.
struct DatasetFile {
  std::string name;
  std::int64_t first_sample, first_record;
};

/// Sample i is record `first_record + i` of `source`, or a record of one of `files`.
struct SampleOrigin {
  std::string source;              ///< file name for messages
  std::vector<DatasetFile> files;  ///< by first_sample; empty: all samples are of `source`
  std::string record_word;         ///< "line" or "record"
  std::int64_t first_record = 0;
  /// The record of each sample if records are not consecutive; otherwise empty.
  std::vector<std::int64_t> records;
  /// The name of a sample that is a file of its own, instead of the above. Any thread.
  std::function<std::string(std::int64_t sample)> name;

  /// "digits.csv.gz, line 17".
  std::string where(std::int64_t sample) const;
};

/// The values of one sample, and where the next one begins.
struct SampleForm {
  DType feature_type = DType::f32;
  Shape shape;               ///< of the features
  bool ends_in_nan = false;  ///< sequences (SequenceForm), whose reader has checked their values
  std::int64_t label_columns = 0;
  std::int64_t label_step = 0;  ///< values from a sample's labels to the next one's
};

class SampleChecks {
 public:
  SampleChecks(const SampleForm& form, std::shared_ptr<const SampleOrigin> origin)
      : form_(form), origin_(std::move(origin)) {}

  /// Throws Error(data) about the first value that is not finite: samples [first, first + count), whose
  /// features lie one after the other.
  void check_finite(std::int64_t first, std::int64_t count, const SampleValues& values) const;
  /// From now on check_labels() makes this demand, too. Any thread.
  void demand(const LabelDemand& demand);
  /// Throws Error(data) about the first label that a demand does not allow. Any thread.
  void check_labels(std::int64_t first, std::int64_t count, const SampleValues& values) const;

 private:
  void check(const LabelDemand& demand, std::int64_t sample, std::int64_t in_block,
             const SampleValues& values) const;

  const SampleForm form_;
  const std::shared_ptr<const SampleOrigin> origin_;
  mutable std::mutex mutex_;
  std::vector<LabelDemand> demands_;
};

}  // namespace lockstep
