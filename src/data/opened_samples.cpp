// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/opened_samples.h"

#include <algorithm>

#include "core/error.h"
#include "data/dataset_fingerprint.h"
#include "data/feature_conversion.h"

namespace lockstep {

namespace {

/// A block has about this many bytes, unless one chunk has more.
constexpr std::int64_t kBlockBytes = std::int64_t{1} << 18;

}  // namespace

OpenedSamples::OpenedSamples(DatasetParts parts) : parts_(std::move(parts)) {
  origin_ = std::make_shared<const SampleOrigin>(std::move(static_cast<SampleOrigin&>(parts_)));
  const std::int64_t values = parts_.values_per_sample();
  if (parts_.feature_step == 0) parts_.feature_step = values;
  if (parts_.label_step == 0) parts_.label_step = parts_.num_label_columns;
  if (parts_.size == 0)
    throw Error(ErrorKind::data, "holds no samples", source(), "Check the path and the option rows.");
  if (values == 0)
    throw Error(ErrorKind::data,
                fmt::format("its samples are empty (shape {})", parts_.feature_shape.to_string()), source(),
                "Every sample needs at least one feature value.");
  checks_ = std::make_shared<SampleChecks>(
      SampleForm{.feature_type = parts_.feature_dtype,
                 .shape = parts_.feature_shape,
                 .ends_in_nan = parts_.sequence && parts_.sequence->ends_in_nan(),
                 .label_columns = parts_.num_label_columns,
                 .label_step = parts_.label_step},
      origin_);
  complete_transform(parts_, source());
  if (has_store()) {
    LOCKSTEP_CHECK(parts_.feature_step == values);
    if (parts_.features.size_bytes() > 0) find_values();
    return;
  }
  parts_.label_kind = parts_.num_label_columns == 0 ? LabelKind::none
                      : parts_.label_rows.empty()   ? LabelKind::indices
                                                    : LabelKind::rows;
  find_values();
  // Overlapping samples are whole numbers.
  if (parts_.feature_step == values) checks_->check_finite(0, parts_.size, values_at(0));
  fingerprint_ = fingerprint_of(*this, 1);
}

/// In the reader's own memory.
void OpenedSamples::find_values() {
  values_ = {.features = parts_.features.data()};
  if (parts_.label_kind == LabelKind::indices) values_.label_indices = parts_.label_indices.data();
  if (parts_.label_kind == LabelKind::rows) values_.label_rows = parts_.label_rows.data();
  LOCKSTEP_CHECK(parts_.features.size_bytes() >= static_cast<std::size_t>(parts_.feature_bytes()),
                 "{} features", parts_.num_features());
  const auto labels = static_cast<std::size_t>(parts_.num_labels());
  LOCKSTEP_CHECK(parts_.label_kind == LabelKind::indices ? parts_.label_indices.size() >= labels
                                                         : parts_.label_indices.empty());
  LOCKSTEP_CHECK(parts_.label_rows.size() == (parts_.label_kind == LabelKind::rows ? labels : 0));
}

BlockGrid OpenedSamples::grid(std::int64_t block_samples) const {
  if (block_samples == 0) {
    const std::int64_t chunk = has_store() ? parts_.store->samples_per_chunk() : 1;
    const std::int64_t chunk_bytes = chunk * parts_.sample_bytes();
    block_samples = chunk * std::max<std::int64_t>(1, kBlockBytes / chunk_bytes);
  }
  std::vector<BlockGrid::Piece> pieces;
  for (const DatasetFile& file : origin_->files) pieces.push_back({file.first_sample, file.first_record});
  if (pieces.empty()) pieces.push_back({0, origin_->records.empty() ? origin_->first_record : 0});
  return {std::move(pieces), parts_.size, std::min(block_samples, parts_.size)};
}

void OpenedSamples::name_classes(std::vector<std::string> names) {
  LOCKSTEP_CHECK(parts_.class_names.empty());
  parts_.class_names = std::move(names);
  if (!has_store()) fingerprint_ = fingerprint_of(*this, 1);
}

void OpenedSamples::keep_values_at(const SampleRoom& values, std::shared_ptr<const void> owner) {
  forget_values();
  values_ = values;
  owner_ = std::move(owner);
}

void OpenedSamples::forget_values() {
  values_ = {};
  parts_.features = Buffer();
  parts_.label_indices = {};
  parts_.label_rows = {};
}

DatasetParts OpenedSamples::take_parts() && {
  LOCKSTEP_CHECK(owner_ == nullptr);
  values_ = {};
  return std::move(parts_);
}

}  // namespace lockstep
