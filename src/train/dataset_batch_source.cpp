// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/dataset_batch_source.h"

#include <algorithm>

#include "core/range.h"
#include "core/timer.h"
#include "data/sample_stream.h"

namespace lockstep {

DatasetBatchSource::DatasetBatchSource(const Dataset& dataset, const StepPlan& plan, int workers, int slots)
    : dataset_(dataset),
      plan_(plan),
      streams_(dataset.streams()),
      samples_(static_cast<std::size_t>(workers)),
      scratch_(static_cast<std::size_t>(workers)),
      indices_(static_cast<std::size_t>(slots)),
      rows_(static_cast<std::size_t>(slots)) {
  const auto sizes = plan.distinct_shard_sizes();
  const auto most = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  for (auto& samples : samples_) samples.resize(most);
  for (auto& scratch : scratch_) scratch.resize(static_cast<std::size_t>(dataset.scratch_values()));
  if (plan.spec().mixing != nullptr) mixer_.emplace(dataset, *plan.spec().mixing, most, workers, slots);
  const std::size_t labels = most * static_cast<std::size_t>(dataset.num_label_columns());
  for (auto& rows : rows_) rows.resize(dataset.label_kind() == LabelKind::rows ? labels : 0);
  for (auto& indices : indices_) indices.resize(dataset.label_kind() == LabelKind::indices ? labels : 0);
}

Microshard DatasetBatchSource::extent(const Batch& batch, int shard) const {
  const Range range = plan_.shard_range(batch.count, shard);
  return {shard, range.first, range.size()};
}

std::span<const std::int64_t> DatasetBatchSource::chosen(const Batch& batch, const Microshard& microshard,
                                                         int worker) {
  const std::span samples(samples_[static_cast<std::size_t>(worker)].data(),
                          static_cast<std::size_t>(microshard.n));
  plan_.samples(batch.epoch, batch.first + microshard.first_sample, samples);
  return samples;
}

void DatasetBatchSource::begin(const Batch& batch, Range own) {
  for (SampleStream* const stream : streams_) stream->begin(plan_, batch, own);
}

DatasetBatchSource::~DatasetBatchSource() {
  for (SampleStream* const stream : streams_) stream->leave(plan_);
}

Labels DatasetBatchSource::gather_labels(std::span<const std::int64_t> samples, const SampleKey& key,
                                         FetchPlace place) {
  Labels labels{.columns = dataset_.num_label_columns()};
  if (auto& rows = rows_[static_cast<std::size_t>(place.slot)]; !rows.empty()) {
    dataset_.gather_labels(samples, key, rows.data(),
                           scratch_[static_cast<std::size_t>(place.worker)].data());
    labels.rows = rows.data();
  } else if (auto& indices = indices_[static_cast<std::size_t>(place.slot)]; !indices.empty()) {
    dataset_.gather_labels(samples, indices.data());
    labels.indices = indices.data();
  }
  return labels;
}

Labels DatasetBatchSource::blank_labels(const Microshard& /*microshard*/, FetchPlace place) {
  if (mixer_) return mixer_->blank(place);
  auto& rows = rows_[static_cast<std::size_t>(place.slot)];
  auto& indices = indices_[static_cast<std::size_t>(place.slot)];
  std::ranges::fill(rows, 0.0F);
  std::ranges::fill(indices, 0);
  return {.indices = indices.empty() ? nullptr : indices.data(),
          .rows = rows.empty() ? nullptr : rows.data(),
          .columns = dataset_.num_label_columns()};
}

Labels DatasetBatchSource::mix(const Batch& batch, const Microshard& microshard,
                               std::span<const std::int64_t> samples, FetchPlace place, float* features) {
  const std::int64_t next = (microshard.first_sample + 1) % batch.count;
  return mixer_->mix({.samples = samples, .key = key(batch, microshard.first_sample)},
                     {.sample = plan_.sample_at(batch.epoch, batch.first + next), .key = key(batch, next)},
                     place, features, scratch_[static_cast<std::size_t>(place.worker)].data());
}

Labels DatasetBatchSource::fetch(const Batch& batch, const Microshard& microshard, FetchPlace place,
                                 float* features) {
  const Timer timer;
  const std::span<const std::int64_t> samples = chosen(batch, microshard, place.worker);
  dataset_.gather_features(samples, key(batch, microshard.first_sample), features,
                           scratch_[static_cast<std::size_t>(place.worker)].data());
  const Labels labels = mixer_ ? mix(batch, microshard, samples, place, features)
                               : gather_labels(samples, key(batch, microshard.first_sample), place);
  if (place.worker == 0) seconds_ += timer.seconds();
  return labels;
}

Labels DatasetBatchSource::fetch_labels(const Batch& batch, const Microshard& microshard, FetchPlace place,
                                        float* /*features*/) {
  const std::span<const std::int64_t> samples = chosen(batch, microshard, place.worker);
  return mixer_ ? mix(batch, microshard, samples, place, nullptr)
                : gather_labels(samples, key(batch, microshard.first_sample), place);
}

}  // namespace lockstep
