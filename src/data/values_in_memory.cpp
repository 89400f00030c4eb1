// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/values_in_memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/device.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/in_parallel.h"
#include "core/range.h"
#include "data/dataset_fingerprint.h"

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

/// In slabs of whole blocks, so that each chunk is read once.
void read_slabs(const OpenedSamples& samples, const SampleRoom& to, int part, int parts, int threads) {
  SampleStore& store = *samples.parts().store;
  const std::int64_t bytes = samples.parts().sample_bytes(), columns = samples.parts().num_label_columns;
  if (!store.has_random_access()) {  // unpacked from the first sample on
    if (part > 0) return;
    parts = threads = 1;
  }
  const BlockGrid whole = samples.grid(0);
  const std::int64_t step = std::max<std::int64_t>(
      1, std::min(kSlabBytes / (whole.block_samples() * bytes),
                  whole.num_blocks() / (std::int64_t{threads} * parts * kSlabsPerThread)));
  const std::int64_t slabs = (whole.num_blocks() + step - 1) / step;
  const Range own{slabs * part / parts, slabs * (part + 1) / parts};
  in_parallel(threads, own.size(), [&](std::int64_t i) {
    const std::int64_t slab = own.first + i;
    const std::int64_t first = whole.samples(slab * step).first;
    const std::int64_t last = whole.samples(std::min((slab + 1) * step, whole.num_blocks()) - 1).last;
    SampleRoom room{.features = static_cast<char*>(to.features) + first * bytes};
    if (to.label_indices != nullptr) room.label_indices = to.label_indices + first * columns;
    if (to.label_rows != nullptr) room.label_rows = to.label_rows + first * columns;
    store.read(first, last - first, room);
  });
}

}  // namespace

std::int64_t bytes_in_memory(const StoredForm& form) {
  return aligned(form.feature_bytes()) + form.num_labels() * kLabelBytes;
}

SampleRoom places_in(const StoredForm& form, void* memory) {
  SampleRoom room{.features = memory};
  char* const labels = static_cast<char*>(memory) + aligned(form.feature_bytes());
  if (form.label_kind == LabelKind::indices) room.label_indices = reinterpret_cast<std::int32_t*>(labels);
  if (form.label_kind == LabelKind::rows) room.label_rows = reinterpret_cast<float*>(labels);
  return room;
}

std::string shared_form(const OpenedSamples& samples) {
  const DatasetParts& parts = samples.parts();
  const auto bytes = static_cast<std::size_t>(parts.sample_bytes());
  Digest digest;
  add_form(digest, parts).add(std::string_view(samples.fingerprint()));
  if (samples.in_memory()) return digest.add(samples.values_at(0).features, bytes).hex();
  const auto labels = static_cast<std::size_t>(parts.num_label_columns);
  std::vector<char> features(bytes);
  std::vector<std::int32_t> indices(parts.label_kind == LabelKind::indices ? labels : 0);
  std::vector<float> rows(parts.label_kind == LabelKind::rows ? labels : 0);
  SampleRoom room{.features = features.data()};
  if (!indices.empty()) room.label_indices = indices.data();
  if (!rows.empty()) room.label_rows = rows.data();
  parts.store->read(0, 1, room);
  digest.add(features.data(), features.size());
  digest.add(indices.data(), indices.size() * sizeof(std::int32_t));
  digest.add(rows.data(), rows.size() * sizeof(float));
  return digest.hex();
}

void fill_memory(const OpenedSamples& samples, void* memory, int part, int parts, int threads) {
  const StoredForm& form = samples.parts();
  const SampleRoom room = places_in(form, memory);
  if (!samples.in_memory()) return read_slabs(samples, room, part, parts, threads);
  const SampleValues values = samples.values_at(0);
  copy_part(room.features, values.features, form.feature_bytes(), part, parts);
  const std::int64_t labels = form.num_labels() * kLabelBytes;
  if (values.label_indices != nullptr)
    copy_part(room.label_indices, values.label_indices, labels, part, parts);
  if (values.label_rows != nullptr) copy_part(room.label_rows, values.label_rows, labels, part, parts);
}

void take_memory(OpenedSamples& samples, void* memory, std::shared_ptr<const void> owner) {
  samples.keep_values_at(places_in(samples.parts(), memory), std::move(owner));
}

void load_values(OpenedSamples& samples, int threads) {
  const StoredForm& form = samples.parts();
  check_memory(samples.source(), form.size,
               static_cast<double>(form.size_bytes()) / static_cast<double>(form.size));
  auto own = std::make_shared<const Buffer>(cpu_device(), static_cast<std::size_t>(bytes_in_memory(form)));
  fill_memory(samples, own->data(), 0, 1, threads);
  take_memory(samples, own->data(), own);
}

}  // namespace lockstep
