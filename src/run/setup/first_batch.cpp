// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/first_batch.h"

#include <algorithm>
#include <vector>

#include "data/reader_dataset.h"
#include "train/dataset_batch_source.h"

namespace lockstep {

void try_first_batch(const UsedDataset& data, const StepPlan& plan) {
  constexpr std::int64_t kEnough = 64;  // samples
  const auto is_fitted = [](const DatasetPart& part) { return part.data->stages().are_fitted(); };
  if (!std::ranges::all_of(data->parts(), is_fitted)) return;
  DatasetBatchSource source(*data, plan, 1, 1);
  const Batch batch = plan.batch({});
  const int shards = static_cast<int>(plan.spec().shards);
  source.begin(batch, {0, shards});
  std::vector<float> features;
  std::int64_t fetched = 0;
  for (int shard = 0; shard < shards && fetched < kEnough; ++shard) {
    const Microshard microshard = source.extent(batch, shard);
    if (microshard.n == 0) continue;
    features.resize(static_cast<std::size_t>(microshard.n * data->feature_shape().num_elements()));
    source.fetch(batch, microshard, {}, features.data());
    fetched += microshard.n;
  }
}

}  // namespace lockstep
