// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/batch_source.h"

#include <algorithm>

#include "core/timer.h"

namespace lockstep {

BatchSource::BatchSource(const Dataset& dataset, const StepPlan& plan, int lanes, int slots)
    : dataset_(dataset),
      plan_(plan),
      samples_(static_cast<std::size_t>(lanes)),
      indices_(static_cast<std::size_t>(slots)),
      rows_(static_cast<std::size_t>(slots)) {
  const auto sizes = plan.distinct_shard_sizes();
  const auto most = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  for (auto& samples : samples_) samples.resize(most);
  const bool dense = dataset.label_kind() == LabelKind::rows || dataset.num_label_columns() > 1;
  for (int slot = 0; slot < slots && dataset.label_kind() != LabelKind::none; ++slot) {
    const auto i = static_cast<std::size_t>(slot);
    if (dense)
      rows_[i].resize(most * static_cast<std::size_t>(dataset.num_label_columns()));
    else
      indices_[i].resize(most);
  }
}

Microshard BatchSource::extent(const Batch& batch, int shard) const {
  const Range range = plan_.shard_range(batch.count, shard);
  return {shard, range.first, range.size()};
}

Labels BatchSource::fetch(const Batch& batch, const Microshard& microshard, int lane, int slot,
                          float* features) {
  const Timer timer;
  std::vector<std::int64_t>& samples = samples_[static_cast<std::size_t>(lane)];
  for (std::int64_t i = 0; i < microshard.n; ++i)
    samples[static_cast<std::size_t>(i)] =
        plan_.sample_at(batch.epoch, batch.first + microshard.first_sample + i);
  const std::span<const std::int64_t> chosen(samples.data(), static_cast<std::size_t>(microshard.n));
  dataset_.gather_features(chosen, features);
  Labels labels;
  if (auto& rows = rows_[static_cast<std::size_t>(slot)]; !rows.empty()) {
    dataset_.gather_labels(chosen, rows.data());
    labels.rows = rows.data();
  } else if (auto& indices = indices_[static_cast<std::size_t>(slot)]; !indices.empty()) {
    dataset_.gather_labels(chosen, indices.data());
    labels.indices = indices.data();
  }
  if (lane == 0) seconds_ += timer.seconds();
  return labels;
}

}  // namespace lockstep
