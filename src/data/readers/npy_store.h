// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the npy reader: rows of arrays in one or several files, which were opened and checked before.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/range.h"
#include "data/readers/npy_header.h"
#include "data/sample_store.h"

namespace lockstep {

/// Arrays of one or several files, whose rows are numbered through. All have the same type and row shape but
/// for the byte order.
class NpyArrays {
 public:
  /// Adds the array's rows [first, last).
  void add(std::shared_ptr<ByteSource> source, const NpyHeader& header, const RowRange& rows);

  std::int64_t rows() const { return first_row_.empty() ? 0 : total_rows_; }
  bool has_random_access() const;
  /// Reads rows [first, first + count), in the machine's byte order.
  void read(std::int64_t first, std::int64_t count, void* to) const;
  /// "x.npy, record 17"
  std::string where(std::int64_t row) const;

 private:
  struct Part {
    std::shared_ptr<ByteSource> source;
    NpyHeader header;
    RowRange rows;
  };
  std::size_t part_of(std::int64_t row) const;

  std::vector<Part> parts_;
  std::vector<std::int64_t> first_row_;  ///< of each part
  std::int64_t total_rows_ = 0;
};

class NpyStore final : public SampleStore {
 public:
  /// `channels`: of a sample, if they are first in the files; otherwise 0.
  NpyStore(NpyArrays features, DType feature_dtype, std::int64_t values_per_sample, std::int64_t channels,
           std::optional<NpyArrays> labels, DType label_dtype, std::int64_t label_columns);

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override;
  bool has_random_access() const override;

 private:
  const NpyArrays features_;
  const DType feature_dtype_;
  const std::int64_t values_per_sample_, channels_;
  const std::optional<NpyArrays> labels_;
  const DType label_dtype_;
  const std::int64_t label_columns_;
};

}  // namespace lockstep
