// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/sample_mixer.h"

#include <algorithm>

namespace lockstep {

SampleMixer::SampleMixer(const Dataset& dataset, const SampleMixing& mixing, std::size_t most_samples,
                         int workers, int slots)
    : dataset_(dataset),
      mixing_(mixing),
      partners_(static_cast<std::size_t>(workers)),
      rows_(static_cast<std::size_t>(slots)) {
  const auto row = static_cast<std::size_t>(mixing_.label_values());
  for (Partner& partner : partners_) {
    partner.features.resize(static_cast<std::size_t>(dataset.feature_shape().num_elements()));
    partner.row.resize(row);
    if (dataset.label_kind() == LabelKind::indices) partner.indices.resize(most_samples);
  }
  for (auto& rows : rows_) rows.resize(most_samples * row);
}

void SampleMixer::gather_rows(std::span<const std::int64_t> samples, const SampleKey& key, Partner& partner,
                              float* rows, float* scratch) const {
  if (dataset_.label_kind() == LabelKind::rows) return dataset_.gather_labels(samples, key, rows, scratch);
  dataset_.gather_labels(samples, partner.indices.data());
  for (std::size_t i = 0; i < samples.size(); ++i)
    mixing_.write_row(partner.indices[i], rows + static_cast<std::int64_t>(i) * mixing_.label_values());
}

Labels SampleMixer::mix(const Samples& of, const Next& next, FetchPlace place, float* features,
                        float* scratch) {
  Partner& partner = partners_[static_cast<std::size_t>(place.worker)];
  const std::int64_t row = mixing_.label_values();
  const auto values = static_cast<std::int64_t>(partner.features.size());
  const auto n = static_cast<std::int64_t>(of.samples.size());
  float* const rows = rows_[static_cast<std::size_t>(place.slot)].data();
  gather_rows(of.samples, of.key, partner, rows, scratch);
  // The first sample, as it is now, is the partner of the last one.
  if (n == 1) {
    gather_rows({&next.sample, 1}, next.key, partner, partner.row.data(), scratch);
    if (features != nullptr)
      dataset_.gather_features({&next.sample, 1}, next.key, partner.features.data(), scratch);
  } else {
    std::copy_n(rows, row, partner.row.begin());
    if (features != nullptr) std::copy_n(features, values, partner.features.begin());
  }
  SampleKey key = of.key;
  for (std::int64_t i = 0; i < n; ++i, ++key.place) {
    const bool last = i + 1 == n;
    const SampleMixing::Draw draw = mixing_.draw(key);
    mixing_.mix_labels(draw, rows + i * row, last ? partner.row.data() : rows + (i + 1) * row);
    if (features != nullptr)
      mixing_.mix_features(draw, features + i * values,
                           last ? partner.features.data() : features + (i + 1) * values);
  }
  return {.rows = rows, .columns = row};
}

Labels SampleMixer::blank(FetchPlace place) {
  auto& rows = rows_[static_cast<std::size_t>(place.slot)];
  std::ranges::fill(rows, 0.0F);
  return {.rows = rows.data(), .columns = mixing_.label_values()};
}

}  // namespace lockstep
