// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/augmented_views.h"

#include <algorithm>

#include "core/error.h"
#include "data/reader_dataset.h"
#include "data/transform_list.h"
#include "data/used_dataset.h"
#include "model/heads.h"
#include "run/jobs/prediction_stream.h"
#include "run/setup/run_context.h"

namespace lockstep {

namespace {

constexpr const char* kOption = "--augmentations";

/// Some draws of the first samples are not all equal.
bool has_random_transforms(const Dataset& set) {
  constexpr std::int64_t kSamples = 8, kDraws = 8;
  const auto values = static_cast<std::size_t>(set.feature_shape().num_elements());
  std::vector<float> first(values), other(values), scratch(static_cast<std::size_t>(set.scratch_values()));
  for (std::int64_t sample = 0; sample < std::min(kSamples, set.size()); ++sample)
    for (std::int64_t draw = 0; draw < kDraws; ++draw) {
      std::vector<float>& out = draw == 0 ? first : other;
      set.gather_features({&sample, 1}, {.seed = 1, .epoch = draw, .place = sample}, out.data(),
                          scratch.data());
      if (draw > 0 && other != first) return true;
    }
  return false;
}

}  // namespace

UsedDataset with_training_transforms(const UsedDataset& set, const DataOptions& options,
                                     const std::string& base_directory) {
  const std::vector<const DataInput*> sets = sets_of(options);
  const std::vector<DatasetPart> inputs = set->inputs();
  std::vector<std::shared_ptr<const ReaderDataset>> parts(set->parts().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ReaderDataset& own = *inputs[i].data;
    TransformList transforms(sets[i]->train, base_directory);
    transforms.use_text(own.shared_text());
    auto changed = std::make_shared<const ReaderDataset>(own.with_transforms(std::move(transforms), true));
    if (changed->feature_shape() != own.feature_shape())
      throw Error(ErrorKind::config,
                  fmt::format("the transforms of training give samples of {}, those of prediction {}",
                              changed->feature_shape().to_string(), own.feature_shape().to_string()),
                  kOption, "Give data.train and data.eval transforms with samples of one shape.");
    parts[i] = std::move(changed);
  }
  UsedDataset views(set->with_parts(std::move(parts)), set.use());
  if (!has_random_transforms(*views))
    throw Error(
        ErrorKind::usage, "no transform of training is random, so all views of a sample are equal", kOption,
        "Leave it out, or give the data of the run random transforms under train (docs/augmentation.md).");
  return views;
}

void check_views(const Heads& heads) {
  for (int head = 0; head < heads.size(); ++head)
    if (heads[head].shape.rank() > 1)
      throw Error(ErrorKind::config,
                  fmt::format("{}the outputs have places ({}), which differ between the views of a sample",
                              heads[head].prefix(), heads[head].shape.to_string()),
                  kOption, "Leave it out.");
}

void add_streams_of_views(RunContext& context, const UsedDataset& set, const DataOptions& options,
                          std::int64_t views, PredictionChoice choice,
                          std::vector<std::unique_ptr<PredictionStream>>& streams,
                          std::vector<UsedDataset>& kept) {
  streams.push_back(std::make_unique<PredictionStream>(context, set, choice));
  if (views == 1) return;
  check_views(*context.model().heads);
  const UsedDataset augmented = with_training_transforms(set, options, context.config().base_directory);
  kept.push_back(augmented);  // the same data
  for (std::int64_t view = 1; view < views; ++view) {
    choice.seed = context.seed() + static_cast<std::uint64_t>(view);
    streams.push_back(std::make_unique<PredictionStream>(context, augmented, choice));
  }
}

}  // namespace lockstep
