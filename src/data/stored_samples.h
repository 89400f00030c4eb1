// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The samples of one reader, ready to be used: in memory, or read from their files while they are used
// (sample_stream.h). Every rank has access to all of them. Nothing changes any more, and all threads may read
// them concurrently.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/block_grid.h"
#include "data/dataset_memory.h"
#include "data/label_demand.h"
#include "data/opened_samples.h"
#include "data/sample_stream.h"

namespace lockstep {

class StoredSamples {
 public:
  /// Reads the values into memory, unless they are there, or begins to read them while they are used. Throws
  /// Error, and what the store throws.
  StoredSamples(OpenedSamples opened, const DatasetMemory& memory);

  std::int64_t size() const { return opened_.size(); }
  const DatasetParts& parts() const { return opened_.parts(); }
  const std::string& source() const { return opened_.source(); }
  /// The origin of a sample: "digits.csv.gz, line 17".
  std::string where(std::int64_t sample) const { return opened_.where(sample); }
  /// See dataset_fingerprint.h.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Samples that are read together. Does not depend on whether they are in memory.
  BlockGrid blocks() const { return opened_.grid(block_samples_); }
  /// Null: the samples are in memory, or are read once.
  SampleStream* stream() const { return stream_.get(); }
  /// The bytes of all values, as they are kept.
  std::int64_t size_bytes() const { return parts().size_bytes(); }
  /// The bytes of them that are in memory; of samples that are read while they are used, that may be.
  std::int64_t memory_bytes() const { return stream_ != nullptr ? stream_->memory_bytes() : size_bytes(); }

  /// Calls use(values) with the values of one sample, which stay until it returns.
  template <typename Use>
  void with_sample(std::int64_t sample, Use use) const {
    LOCKSTEP_DCHECK(sample >= 0 && sample < size() && !read_once_);
    if (stream_ == nullptr)
      use(opened_.values_at(sample));
    else
      stream_->with_sample(sample, use);
  }
  /// Copies samples [first, first + count), labels too. Checks values that are read just now. Throws
  /// Error(data).
  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) const;
  /// The steps of a sequence before its padding. Needs parts().sequence.
  std::int64_t sequence_length(std::int64_t sample) const;

  /// Throws Error(data) that names the first record with a label that the demand does not allow. Samples that
  /// are not in memory are checked when their block is read.
  void check_labels(const LabelDemand& demand) const;

 private:
  void prepare(const DatasetMemory& memory);
  void open_stream(const DatasetMemory& memory);

  OpenedSamples opened_;
  std::string fingerprint_;
  std::int64_t block_samples_ = 0;
  std::unique_ptr<SampleStream> stream_;
  bool read_once_ = false;  ///< neither in memory nor streamed
};

}  // namespace lockstep
