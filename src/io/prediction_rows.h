// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: rows of predictions in an HDF5 file whose datasets are contiguous and have their places.
// The rows go to the file directly, so several processes can write different ones at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/prediction_file.h"

namespace lockstep {

class PredictionRowWriter {
 public:
  /// `offsets` in bytes, in this order: sample; then of each head outputs, spread (if it has one), class (if
  /// it has classes), labels (if it has some). `number`: PredictionInfo's. `path` is for messages.
  PredictionRowWriter(int descriptor, std::string path, std::vector<PredictedHead> heads,
                      std::vector<std::uint64_t> offsets, std::function<std::int64_t(std::int64_t)> number);
  void write(std::int64_t first, std::int64_t n, std::span<const PredictedRows> heads);

 private:
  void put(std::uint64_t offset, std::size_t row_bytes, std::int64_t first, std::int64_t n,
           const void* rows) const;

  int descriptor_;
  std::string path_;
  std::vector<PredictedHead> heads_;
  std::vector<std::uint64_t> offsets_;
  std::function<std::int64_t(std::int64_t)> number_;
  std::vector<std::int64_t> numbers_;
  std::vector<std::int32_t> classes_;
};

}  // namespace lockstep
