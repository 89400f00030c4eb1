// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the npy reader: rows of arrays in one or several files, which were opened and checked before.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "core/range.h"
#include "data/npy_header.h"
#include "data/readers/text_classes.h"
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
  /// Rows that are read about as fast as one: those of arrays in Fortran order. 1: none.
  std::int64_t rows_per_chunk() const;
  /// Reads rows [first, first + count) of numbers, in the machine's byte order and in C order.
  void read(std::int64_t first, std::int64_t count, void* to) const;
  /// Calls use(i, text) with the texts of these rows in UTF-8, i from 0 on. Throws Error(data).
  void read_texts(std::int64_t first, std::int64_t count,
                  FunctionRef<void(std::int64_t i, std::string_view text)> use) const;
  /// "x.npy, record 17"
  std::string where(std::int64_t row) const;

 private:
  /// All values of an array in Fortran order that is unpacked, in C order: rows cannot be read alone.
  struct Unpacked {
    std::once_flag once;
    std::vector<char> bytes;
  };
  struct Part {
    std::shared_ptr<ByteSource> source;
    NpyHeader header;
    RowRange rows;
    std::shared_ptr<Unpacked> unpacked;
  };
  std::size_t part_of(std::int64_t row) const;
  /// Calls use(part, row, count) for the rows of each file that are among [first, first + count).
  void for_each_part(std::int64_t first, std::int64_t count,
                     FunctionRef<void(const Part&, std::int64_t row, std::int64_t count)> use) const;
  static std::string where(const Part& part, std::int64_t row);
  static void read_bytes(const Part& part, std::int64_t row, std::int64_t count, char* to);

  std::vector<Part> parts_;
  std::vector<std::int64_t> first_row_;  ///< of each part
  std::int64_t total_rows_ = 0;
};

class NpyStore final : public SampleStore {
 public:
  /// `channels`: of a sample, if they are first in the files; otherwise 0.
  NpyStore(NpyArrays features, DType feature_dtype, std::int64_t values_per_sample, std::int64_t channels,
           std::optional<NpyArrays> labels, DType label_dtype, std::int64_t label_columns,
           std::optional<TextClasses> classes);

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override;
  bool has_random_access() const override;
  std::int64_t samples_per_chunk() const override { return features_.rows_per_chunk(); }

 private:
  const NpyArrays features_;
  const DType feature_dtype_;
  const std::int64_t values_per_sample_, channels_;
  const std::optional<NpyArrays> labels_;
  const DType label_dtype_;
  const std::int64_t label_columns_;
  const std::optional<TextClasses> classes_;  ///< labels are texts
};

}  // namespace lockstep
