// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a data set in memory: its own, or one that processes share. Features come first, then labels.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/device.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/in_parallel.h"
#include "core/range.h"
#include "data/dataset.h"
#include "data/sample_stream.h"

namespace lockstep {

namespace {

/// What is read at once into memory.
constexpr std::int64_t kSlabBytes = std::int64_t{8} << 20;
constexpr std::int64_t kSlabsPerThread = 8;  ///< at least, if there are enough blocks
constexpr std::int64_t kLabelBytes = 4;
constexpr std::int64_t kAlignment = 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Copies part `part` of `parts` of `bytes`.
void copy_part(void* to, const void* from, std::int64_t bytes, int part, int parts) {
  const std::int64_t first = bytes * part / parts, last = bytes * (part + 1) / parts;
  if (first < last)
    std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                static_cast<std::size_t>(last - first));
}

}  // namespace

std::int64_t Dataset::shared_bytes() const {
  LOCKSTEP_CHECK(inputs_.empty() && stream_ == nullptr);
  const std::int64_t of_features =
      num_features_ * static_cast<std::int64_t>(size_in_bytes(parts_.feature_dtype));
  return aligned(of_features) + num_labels() * kLabelBytes;
}

std::string Dataset::shared_form() const {
  Digest digest;
  add_form(digest).add(std::string_view(fingerprint_));
  if (values_.features != nullptr) {
    digest.add(values_at(0).features, static_cast<std::size_t>(sample_bytes()));
  } else {
    const auto labels = static_cast<std::size_t>(parts_.num_label_columns);
    std::vector<char> features(static_cast<std::size_t>(sample_bytes()));
    std::vector<std::int32_t> indices(label_kind_ == LabelKind::indices ? labels : 0);
    std::vector<float> rows(label_kind_ == LabelKind::rows ? labels : 0);
    SampleRoom room{.features = features.data()};
    if (!indices.empty()) room.label_indices = indices.data();
    if (!rows.empty()) room.label_rows = rows.data();
    parts_.store->read(0, 1, room);
    digest.add(features.data(), features.size());
    digest.add(indices.data(), indices.size() * sizeof(std::int32_t));
    digest.add(rows.data(), rows.size() * sizeof(float));
  }
  return digest.hex();
}

SampleRoom Dataset::places_in(void* memory) const {
  SampleRoom room{.features = memory};
  char* const labels = static_cast<char*>(memory) + (shared_bytes() - num_labels() * kLabelBytes);
  if (label_kind_ == LabelKind::indices) room.label_indices = reinterpret_cast<std::int32_t*>(labels);
  if (label_kind_ == LabelKind::rows) room.label_rows = reinterpret_cast<float*>(labels);
  return room;
}

/// In slabs of whole blocks, so that each chunk is read once.
void Dataset::read_slabs(const SampleRoom& to, int part, int parts, int threads) const {
  if (!parts_.store->has_random_access()) {  // unpacked from the first sample on
    if (part > 0) return;
    parts = threads = 1;
  }
  const BlockGrid whole = grid(0);
  const std::int64_t step = std::max<std::int64_t>(
      1, std::min(kSlabBytes / (whole.block_samples() * sample_bytes()),
                  whole.num_blocks() / (std::int64_t{threads} * parts * kSlabsPerThread)));
  const std::int64_t slabs = (whole.num_blocks() + step - 1) / step;
  const Range own{slabs * part / parts, slabs * (part + 1) / parts};
  in_parallel(threads, own.size(), [&](std::int64_t i) {
    const std::int64_t slab = own.first + i;
    const std::int64_t first = whole.samples(slab * step).first;
    const std::int64_t last = whole.samples(std::min((slab + 1) * step, whole.num_blocks()) - 1).last;
    SampleRoom room{.features = static_cast<char*>(to.features) + first * sample_bytes()};
    if (to.label_indices != nullptr) room.label_indices = to.label_indices + first * parts_.num_label_columns;
    if (to.label_rows != nullptr) room.label_rows = to.label_rows + first * parts_.num_label_columns;
    parts_.store->read(first, last - first, room);
  });
}

/// Reads all samples into memory of this process.
void Dataset::load(int threads) {
  check_memory(origin_->source, parts_.size,
               static_cast<double>(size_bytes()) / static_cast<double>(parts_.size));
  auto own = std::make_shared<const Buffer>(cpu_device(), static_cast<std::size_t>(shared_bytes()));
  values_ = places_in(own->data());
  owner_ = std::move(own);
  read_slabs(values_, 0, 1, threads);
  check_values(threads);
}

void Dataset::fill_shared(void* memory, int part, int parts, int threads) {
  const SampleRoom room = places_in(memory);
  if (values_.features == nullptr) return read_slabs(room, part, parts, threads);
  copy_part(room.features, values_.features,
            num_features_ * static_cast<std::int64_t>(size_in_bytes(parts_.feature_dtype)), part, parts);
  const std::int64_t labels = num_labels() * kLabelBytes;
  if (label_kind_ == LabelKind::indices)
    copy_part(room.label_indices, values_.label_indices, labels, part, parts);
  if (label_kind_ == LabelKind::rows) copy_part(room.label_rows, values_.label_rows, labels, part, parts);
}

void Dataset::take_shared(void* memory, std::shared_ptr<const void> owner) {
  forget_values();
  values_ = places_in(memory);
  owner_ = std::move(owner);
}

/// Of the reader's own memory.
void Dataset::forget_values() {
  values_ = {};
  parts_.features = Buffer();
  parts_.label_indices = {};
  parts_.label_rows = {};
}

}  // namespace lockstep
