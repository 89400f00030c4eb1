// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_fingerprint.h"

#include <algorithm>
#include <vector>

#include "core/device.h"
#include "core/hash.h"
#include "core/in_parallel.h"
#include "core/range.h"
#include "data/opened_samples.h"
#include "data/table_info.h"
#include "data/text_info.h"

namespace lockstep {

namespace {

/// The bytes of a larger set with a store that are in the fingerprint: some blocks, evenly spread.
constexpr std::int64_t kDigestBytes = std::int64_t{64} << 20;
/// Samples of it, if each must be decoded.
constexpr std::int64_t kMostDecoded = 4096;
/// The blocks per thread, and the most bytes, that are read before they are added.
constexpr std::int64_t kBlocksPerThread = 4, kSlabBytes = std::int64_t{8} << 20;

/// The blocks that are in the fingerprint, as ranges of samples.
std::vector<Range> blocks_of_fingerprint(const OpenedSamples& set) {
  const BlockGrid whole = set.grid(0);
  std::int64_t count = whole.num_blocks();
  if (set.parts().size_bytes() > kDigestBytes)
    count = kDigestBytes / (whole.block_samples() * set.parts().sample_bytes());
  if (set.parts().store->decodes_samples()) count = std::min(count, kMostDecoded / whole.block_samples());
  count = std::clamp<std::int64_t>(count, 1, whole.num_blocks());
  std::vector<Range> blocks;
  for (std::int64_t i = 0; i < count; ++i) blocks.push_back(whole.samples(i * whole.num_blocks() / count));
  return blocks;
}

/// Adds the values of some blocks: all features, then all labels.
void add_blocks(Digest& digest, const OpenedSamples& set, int threads) {
  const std::vector<Range> blocks = blocks_of_fingerprint(set);
  const std::int64_t columns = set.parts().num_label_columns, sample_bytes = set.parts().sample_bytes();
  std::vector<std::int64_t> first_label{0};
  std::int64_t longest = 0;  // in samples
  for (const Range& block : blocks) {
    first_label.push_back(first_label.back() + block.size() * columns);
    longest = std::max(longest, block.size());
  }
  const auto labels = static_cast<std::size_t>(first_label.back());
  std::vector<std::int32_t> indices(set.parts().label_kind == LabelKind::indices ? labels : 0);
  std::vector<float> rows(set.parts().label_kind == LabelKind::rows ? labels : 0);
  const auto count = static_cast<std::int64_t>(blocks.size());
  const std::int64_t together = std::clamp<std::int64_t>(kSlabBytes / (longest * sample_bytes), 1,
                                                         std::min(count, threads * kBlocksPerThread));
  const bool in_memory = set.in_memory();
  Buffer features;
  if (!in_memory)
    features = Buffer(cpu_device(), static_cast<std::size_t>(together * longest * sample_bytes));
  const auto read = [&](std::int64_t i, SampleRoom room) {
    const Range& block = blocks[static_cast<std::size_t>(i)];
    const std::int64_t first = first_label[static_cast<std::size_t>(i)];
    if (!indices.empty()) room.label_indices = indices.data() + first;
    if (!rows.empty()) room.label_rows = rows.data() + first;
    if (!in_memory) return set.parts().store->read(block.first, block.size(), room);
    const SampleValues values = set.values_at(block.first);
    if (room.label_indices != nullptr)
      std::copy_n(values.label_indices, block.size() * columns, room.label_indices);
    if (room.label_rows != nullptr) std::copy_n(values.label_rows, block.size() * columns, room.label_rows);
  };
  for (std::int64_t done = 0; done < count; done += together) {
    const std::int64_t now = std::min(together, count - done);
    const auto place = [&](std::int64_t i) {
      return static_cast<char*>(features.data()) + i * longest * sample_bytes;
    };
    in_parallel(in_memory ? 1 : threads, now,
                [&](std::int64_t i) { read(done + i, {.features = in_memory ? nullptr : place(i)}); });
    for (std::int64_t i = 0; i < now; ++i) {
      const Range& block = blocks[static_cast<std::size_t>(done + i)];
      digest.add(in_memory ? set.values_at(block.first).features : place(i),
                 static_cast<std::size_t>(block.size() * sample_bytes));
    }
  }
  digest.add(indices.data(), indices.size() * sizeof(std::int32_t));
  digest.add(rows.data(), rows.size() * sizeof(float));
}

}  // namespace

Digest& add_form(Digest& digest, const StoredForm& form) {
  return digest.add(std::string_view(name_of(form.feature_dtype)))
      .add(std::string_view(form.feature_shape.to_string()))
      .add(form.size)
      .add(form.num_label_columns)
      .add(static_cast<std::int64_t>(form.label_kind));
}

std::string fingerprint_of(const OpenedSamples& samples, int threads) {
  const DatasetParts& parts = samples.parts();
  Digest digest;
  add_form(digest, parts);
  if (samples.has_store()) {
    add_blocks(digest, samples, threads);
  } else {
    digest.add(parts.features.data(), static_cast<std::size_t>(parts.feature_bytes()));
    digest.add(parts.label_indices.data(), parts.label_indices.size() * sizeof(std::int32_t));
    digest.add(parts.label_rows.data(), parts.label_rows.size() * sizeof(float));
  }
  for (const BadRecord& record : parts.left_out) digest.add(record.sample);
  const FeatureTransform& transform = parts.transform;
  digest.add(&transform.scale, sizeof(float)).add(&transform.offset, sizeof(float));
  for (const std::vector<float>* list : {&transform.mean, &transform.std}) {
    digest.add(static_cast<std::int64_t>(list->size()));
    digest.add(list->data(), list->size() * sizeof(float));
  }
  if (parts.feature_step != parts.values_per_sample()) digest.add(parts.feature_step).add(parts.label_step);
  if (parts.sequence && (parts.sequence->ends_in_nan() || parts.sequence->padding != 0))
    digest.add(&parts.sequence->padding, sizeof(float));
  if (parts.text) digest.add(std::string_view(parts.text->digest()));
  if (parts.table)
    if (const std::string values = parts.table->categories_text(); !values.empty())
      digest.add(std::string_view(values));
  for (const std::string& name : parts.class_names) digest.add(std::string_view(name));
  return digest.hex().substr(0, 16);
}

}  // namespace lockstep
