// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/npy_store.h"

#include <algorithm>

#include "core/error.h"
#include "core/range.h"
#include "data/readers/record_store.h"

namespace lockstep {

void NpyArrays::add(std::shared_ptr<ByteSource> source, const NpyHeader& header, const RowRange& rows) {
  if (rows.first == rows.last) return;
  parts_.push_back({std::move(source), header, rows});
  first_row_.push_back(total_rows_);
  total_rows_ += rows.last - rows.first;
}

bool NpyArrays::has_random_access() const {
  return std::ranges::all_of(parts_, [](const Part& part) { return part.source->has_random_access(); });
}

std::size_t NpyArrays::part_of(std::int64_t row) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(first_row_, row) - first_row_.begin()) - 1;
}

std::string NpyArrays::where(std::int64_t row) const {
  const std::size_t part = part_of(row);
  return fmt::format("{}, record {}", parts_[part].source->where(),
                     parts_[part].rows.first + row - first_row_[part]);
}

void NpyArrays::read(std::int64_t first, std::int64_t count, void* to) const {
  char* out = static_cast<char*>(to);
  for (std::size_t index = part_of(first); count > 0; ++index) {
    const auto& [source, header, rows] = parts_[index];
    const std::int64_t row = rows.first + first - first_row_[index];
    const std::int64_t here = std::min(count, rows.last - row);
    const std::int64_t begin = header.data_offset + row * header.row_bytes();
    const auto bytes = static_cast<std::size_t>(here * header.row_bytes());
    read_records(
        *source, begin, out, bytes, here,
        [&, width = header.row_bytes()](std::int64_t i) {
          return Range{begin + i * width, begin + (i + 1) * width};
        },
        [&](std::int64_t i) { return fmt::format("{}, record {}", source->where(), row + i); });
    // The checksum of what is unpacked is checked at its end.
    char extra = 0;
    if (row + here == header.rows() && !source->has_random_access() &&
        source->read_some(begin + static_cast<std::int64_t>(bytes), &extra, 1) != 0)
      throw Error(ErrorKind::data,
                  fmt::format("continues after the {} rows that its header announces", header.rows()),
                  source->where(), "The file may be damaged, or is of another format.");
    to_native(out, here * header.values_per_row(), header.type);
    out += bytes;
    first += here;
    count -= here;
  }
}

NpyStore::NpyStore(NpyArrays features, DType feature_dtype, std::int64_t values_per_sample,
                   std::int64_t channels, std::optional<NpyArrays> labels, DType label_dtype,
                   std::int64_t label_columns)
    : features_(std::move(features)),
      feature_dtype_(feature_dtype),
      values_per_sample_(values_per_sample),
      channels_(channels),
      labels_(std::move(labels)),
      label_dtype_(label_dtype),
      label_columns_(label_columns) {}

bool NpyStore::has_random_access() const {
  return features_.has_random_access() && (!labels_ || labels_->has_random_access());
}

void NpyStore::read(std::int64_t first, std::int64_t count, const SampleRoom& to) {
  if (channels_ == 0) {
    features_.read(first, count, to.features);
  } else {
    const std::size_t value_bytes = size_in_bytes(feature_dtype_);
    std::vector<char> scratch(static_cast<std::size_t>(count * values_per_sample_) * value_bytes);
    features_.read(first, count, scratch.data());
    channels_to_last(value_bytes, scratch.data(), to.features, count, channels_,
                     values_per_sample_ / channels_);
  }
  if (!labels_) return;
  std::vector<char> scratch(static_cast<std::size_t>(count * label_columns_) * size_in_bytes(label_dtype_));
  labels_->read(first, count, scratch.data());
  convert_labels(scratch.data(), label_dtype_, count * label_columns_, to,
                 [&](std::int64_t i) { return labels_->where(first + i / label_columns_); });
}

}  // namespace lockstep
