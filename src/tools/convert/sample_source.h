// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The chosen samples of a data set, in their order, as they are written to other files: as they are stored,
// or transformed. Threads read side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/reader_dataset.h"
#include "data/used_dataset.h"
#include "io/sample_file.h"

namespace lockstep {

/// Samples in memory.
struct Samples {
  std::int64_t count = 0;
  std::vector<char> features;  ///< in the source's type
  std::vector<std::int32_t> label_indices;
  std::vector<float> label_rows;

  SampleBlock block() const {
    return {count, features.data(), label_indices.empty() ? nullptr : label_indices.data(),
            label_rows.empty() ? nullptr : label_rows.data()};
  }
};

class SampleSource {
 public:
  /// `transformed`: float32 after scale, offset, mean, std and the fixed form of the transforms; otherwise as
  /// stored. `set` is of one reader. `type` is the type to deliver; bf16, and any type to f32, are
  /// converted.
  SampleSource(UsedDataset set, bool transformed, SampleFormat format);

  const ReaderDataset& data() const { return *data_->single(); }
  std::int64_t size() const { return data_.num_chosen(); }
  const Shape& shape() const { return transformed_ ? data().feature_shape() : data().stored_shape(); }
  DType type() const { return type_; }
  std::int64_t sample_bytes() const {
    return shape().num_elements() * static_cast<std::int64_t>(size_in_bytes(type_));
  }

  /// Chosen samples [first, first + count). Any thread. Throws Error(data).
  Samples read(std::int64_t first, std::int64_t count) const;
  /// The origin of a chosen sample: "digits.csv.gz, line 17".
  std::string where(std::int64_t index) const { return data_->where(sample_at(index)); }

 private:
  std::int64_t sample_at(std::int64_t index) const {
    const SampleChoice* const choice = data_.use().choice.get();
    return choice != nullptr ? choice->at(index) : index;
  }
  std::vector<char> converted(const std::vector<char>& stored, std::int64_t count) const;

  UsedDataset data_;
  bool transformed_;
  DType type_;
};

/// A hash over types, shape and values of each of the samples.
std::uint64_t hash_of(const Samples& samples);

}  // namespace lockstep
