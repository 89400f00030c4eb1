// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/rows_batch_source.h"

#include <algorithm>

namespace lockstep {

RowsBatchSource::RowsBatchSource(std::int64_t feature_elements, std::vector<std::int64_t> sizes)
    : feature_elements_(feature_elements), first_{0} {
  for (const std::int64_t size : sizes) first_.push_back(first_.back() + size);
}

void RowsBatchSource::set(const float* features, Labels labels) {
  features_ = features;
  labels_ = labels;
}

Microshard RowsBatchSource::extent(const Batch& /*batch*/, int shard) const {
  const std::int64_t *const first = &first_[static_cast<std::size_t>(shard)], *const last = first + 1;
  return {shard, *first, *last - *first};
}

Labels RowsBatchSource::fetch(const Batch& batch, const Microshard& microshard, FetchPlace place,
                              float* features) {
  std::copy_n(features_ + microshard.first_sample * feature_elements_, microshard.n * feature_elements_,
              features);
  return fetch_labels(batch, microshard, place, features);
}

Labels RowsBatchSource::fetch_labels(const Batch& /*batch*/, const Microshard& microshard,
                                     FetchPlace /*place*/, float* /*features*/) {
  const std::int64_t first = microshard.first_sample * labels_.columns;
  return {.indices = labels_.indices == nullptr ? nullptr : labels_.indices + first,
          .rows = labels_.rows == nullptr ? nullptr : labels_.rows + first,
          .columns = labels_.columns};
}

}  // namespace lockstep
