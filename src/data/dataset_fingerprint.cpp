// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dataset's fingerprint. A set with a store has the same one in memory and as a stream.
#include <algorithm>
#include <vector>

#include "core/device.h"
#include "core/hash.h"
#include "core/in_parallel.h"
#include "core/range.h"
#include "data/dataset.h"
#include "data/table_info.h"
#include "data/text_info.h"

namespace lockstep {

namespace {

/// Of a larger set with a store, so much is in the fingerprint: some blocks, evenly spread.
constexpr std::int64_t kDigestBytes = std::int64_t{64} << 20;
/// Samples of it, if each must be decoded.
constexpr std::int64_t kMostDecoded = 4096;
/// What is read before its bytes are added: so many blocks per thread, but no more bytes than these.
constexpr std::int64_t kBlocksPerThread = 4, kSlabBytes = std::int64_t{8} << 20;

}  // namespace

Digest& Dataset::add_form(Digest& digest) const {
  return digest.add(std::string_view(name_of(parts_.feature_dtype)))
      .add(std::string_view(parts_.feature_shape.to_string()))
      .add(parts_.size)
      .add(parts_.num_label_columns)
      .add(static_cast<std::int64_t>(label_kind_));
}

/// The samples of the set's blocks that are in the fingerprint.
std::vector<Range> Dataset::blocks_of_fingerprint() const {
  const BlockGrid whole = grid(0);
  std::int64_t count = whole.num_blocks();
  if (size_bytes() > kDigestBytes) count = kDigestBytes / (whole.block_samples() * sample_bytes());
  if (parts_.store->decodes_samples()) count = std::min(count, kMostDecoded / whole.block_samples());
  count = std::clamp<std::int64_t>(count, 1, whole.num_blocks());
  std::vector<Range> blocks;
  for (std::int64_t i = 0; i < count; ++i) blocks.push_back(whole.samples(i * whole.num_blocks() / count));
  return blocks;
}

/// Adds the values of some blocks: all features, then all labels.
void Dataset::add_blocks(Digest& digest, int threads) const {
  const std::vector<Range> blocks = blocks_of_fingerprint();
  const std::int64_t columns = parts_.num_label_columns;
  std::vector<std::int64_t> first_label{0};
  std::int64_t longest = 0;  // in samples
  for (const Range& block : blocks) {
    first_label.push_back(first_label.back() + block.size() * columns);
    longest = std::max(longest, block.size());
  }
  const auto labels = static_cast<std::size_t>(first_label.back());
  std::vector<std::int32_t> indices(label_kind_ == LabelKind::indices ? labels : 0);
  std::vector<float> rows(label_kind_ == LabelKind::rows ? labels : 0);
  const auto count = static_cast<std::int64_t>(blocks.size());
  const std::int64_t together = std::clamp<std::int64_t>(kSlabBytes / (longest * sample_bytes()), 1,
                                                         std::min(count, threads * kBlocksPerThread));
  const bool in_memory = values_.features != nullptr;
  Buffer features;
  if (!in_memory)
    features = Buffer(cpu_device(), static_cast<std::size_t>(together * longest * sample_bytes()));
  const auto read = [&](std::int64_t i, SampleRoom room) {
    const Range& block = blocks[static_cast<std::size_t>(i)];
    const std::int64_t first = first_label[static_cast<std::size_t>(i)];
    if (!indices.empty()) room.label_indices = indices.data() + first;
    if (!rows.empty()) room.label_rows = rows.data() + first;
    if (!in_memory) return parts_.store->read(block.first, block.size(), room);
    const SampleValues values = values_at(block.first);
    if (room.label_indices != nullptr)
      std::copy_n(values.label_indices, block.size() * columns, room.label_indices);
    if (room.label_rows != nullptr) std::copy_n(values.label_rows, block.size() * columns, room.label_rows);
  };
  for (std::int64_t done = 0; done < count; done += together) {
    const std::int64_t now = std::min(together, count - done);
    const auto place = [&](std::int64_t i) {
      return static_cast<char*>(features.data()) + i * longest * sample_bytes();
    };
    in_parallel(in_memory ? 1 : threads, now,
                [&](std::int64_t i) { read(done + i, {.features = in_memory ? nullptr : place(i)}); });
    for (std::int64_t i = 0; i < now; ++i) {
      const Range& block = blocks[static_cast<std::size_t>(done + i)];
      digest.add(in_memory ? values_at(block.first).features : place(i),
                 static_cast<std::size_t>(block.size() * sample_bytes()));
    }
  }
  digest.add(indices.data(), indices.size() * sizeof(std::int32_t));
  digest.add(rows.data(), rows.size() * sizeof(float));
}

std::string Dataset::computed_fingerprint(int threads) const {
  Digest digest;
  add_form(digest);
  if (has_store()) {
    add_blocks(digest, threads);
  } else {
    digest.add(parts_.features.data(),
               static_cast<std::size_t>(num_features_) * size_in_bytes(parts_.feature_dtype));
    digest.add(parts_.label_indices.data(), parts_.label_indices.size() * sizeof(std::int32_t));
    digest.add(parts_.label_rows.data(), parts_.label_rows.size() * sizeof(float));
  }
  for (const BadRecord& record : left_out_) digest.add(record.sample);
  const FeatureTransform& transform = parts_.transform;
  digest.add(&transform.scale, sizeof(float)).add(&transform.offset, sizeof(float));
  for (const std::vector<float>* list : {&transform.mean, &transform.std}) {
    digest.add(static_cast<std::int64_t>(list->size()));
    digest.add(list->data(), list->size() * sizeof(float));
  }
  if (parts_.feature_step != elements_per_sample_) digest.add(parts_.feature_step).add(parts_.label_step);
  if (parts_.sequence && parts_.sequence->ends_in_nan()) digest.add(&parts_.sequence->padding, sizeof(float));
  if (parts_.text) digest.add(std::string_view(parts_.text->vocabulary.digest()));
  if (parts_.table)
    if (const std::string values = parts_.table->categories_text(); !values.empty())
      digest.add(std::string_view(values));
  for (const std::string& name : parts_.class_names) digest.add(std::string_view(name));
  return digest.hex().substr(0, 16);
}

}  // namespace lockstep
