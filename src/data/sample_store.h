// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads any samples of a data set from its files. A reader whose format allows that gives a store instead of
// values (DatasetParts::store); the data set then reads all samples into memory at the start, or, if they are
// too many, blocks of them while they are used (sample_stream.h).
#pragma once

#include <cstdint>

namespace lockstep {

/// The values of samples, one after the other. What a set does not have is null.
struct SampleValues {
  const void* features = nullptr;  ///< in the file's type, channels last
  const std::int32_t* label_indices = nullptr;
  const float* label_rows = nullptr;
};

/// Room for them.
struct SampleRoom {
  void* features = nullptr;
  std::int32_t* label_indices = nullptr;
  float* label_rows = nullptr;
  operator SampleValues() const { return {features, label_indices, label_rows}; }
};

class SampleStore {
 public:
  virtual ~SampleStore() = default;
  /// Reads samples [first, first + count). Threads call it concurrently. Throws Error(data) with file and
  /// record.
  virtual void read(std::int64_t first, std::int64_t count, const SampleRoom& to) = 0;
  /// Samples that are read as fast as one of them, because they are compressed together: the rows of an HDF5
  /// chunk. 1: none.
  virtual std::int64_t samples_per_chunk() const { return 1; }
  /// False: the files are compressed as a whole, and samples are unpacked from the first one on. Such a set
  /// must fit into memory.
  virtual bool has_random_access() const { return true; }
  /// Each sample takes far longer to read than its bytes, as an image that is decoded.
  virtual bool decodes_samples() const { return false; }
};

}  // namespace lockstep
