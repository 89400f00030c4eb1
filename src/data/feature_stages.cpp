// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Scratch memory with whitening: that of the transforms, then rows of samples, and whitened rows.
#include "data/feature_stages.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep {

namespace {

/// "mean: [0.49, 0.48, 0.45], std: [0.2, 0.2, 0.2]"; "mean: 0.13" for one.
std::string numbers_text(const FeatureTransform& transform) {
  const auto list = [](const std::vector<float>& values) {
    return values.size() == 1 ? fmt::format("{:.6g}", values[0])
                              : fmt::format("[{:.6g}]", fmt::join(values, ", "));
  };
  return fmt::format("mean: {}, std: {}", list(transform.mean), list(transform.std));
}

CentringStage centring(const FeatureConversion& conversion, const WhitenStage& whitening) {
  constexpr std::size_t kMostChannels = 8;
  if (whitening.options().used()) return {"whiten", "leave out whiten, or this transform."};
  const FeatureTransform& transform = conversion.transform();
  if (transform.mean.empty() && transform.normalize == NormalizeBy::none) return {};
  const bool shown = !transform.mean.empty() && transform.mean.size() <= kMostChannels;
  return {transform.normalize == NormalizeBy::none ? "the mean and std of section data" : "data.normalize",
          fmt::format("leave it out there, and end the list with `- normalize: {{{}}}`{}",
                      shown ? numbers_text(transform) : "mean: [...], std: [...]",
                      shown ? "." : ", with the numbers that `lockstep data` shows.")};
}

}  // namespace

FeatureStages::FeatureStages(const DatasetParts& parts, const std::string& source)
    : source_(source),
      is_text_(parts.text != nullptr),
      is_sequence_(parts.sequence.has_value()),
      values_(parts.values_per_sample()),
      conversion_(parts, source),
      whitening_(parts.feature_shape) {}

FeatureStages FeatureStages::with_whitening(const WhitenOptions& options) const {
  if (!options.used()) return *this;
  LOCKSTEP_CHECK(!whitening_.options().used() && transforms_->empty());
  if (is_text_)
    throw Error(ErrorKind::config, "its samples are texts, which cannot be whitened", source_,
                "Leave out whiten.");
  if (is_sequence_)
    throw Error(ErrorKind::config,
                "its samples are sequences of different lengths, whose padding would be whitened, too",
                source_, "Leave out whiten.");
  FeatureStages stages = *this;
  stages.whitening_ = WhitenStage(options, whitening_.shape(), source_);
  return stages;
}

FeatureStages FeatureStages::with_transforms(std::shared_ptr<TransformList> transforms, bool training) const {
  FeatureStages stages = *this;
  stages.transforms_ = std::move(transforms);
  stages.transforms_->come_after(centring(conversion_, whitening_));
  if (knows_shape()) stages.transforms_->prepare(whitening_.shape());
  stages.training_ = training;
  return stages;
}

FeatureStages FeatureStages::fitted(const StageNumbers& numbers) const {
  FeatureStages stages = *this;
  if (numbers.normalization != nullptr) {
    stages.conversion_ = conversion_.normalized(numbers.normalization);
    stages.transforms_->come_after(centring(stages.conversion_, whitening_));  // now it names the numbers
  }
  if (numbers.whitening == nullptr) return stages;
  stages.whitening_ = whitening_.fitted(numbers.whitening);
  if (!knows_shape()) stages.transforms_->prepare(stages.whitening_.shape());
  return stages;
}

StageNumbers FeatureStages::numbers() const { return {conversion_.normalization(), whitening_.whitening()}; }

std::int64_t FeatureStages::scratch_values() const {
  const std::int64_t of_transforms = transforms_->scratch_values();
  // No more components than values.
  const std::int64_t with_rows =
      whitening_.options().used() ? of_transforms + 2 * whitening_.samples_together() * values_ : 0;
  return std::max(transforms_->in_place() ? 0 : of_transforms, with_rows);
}

void FeatureStages::apply(const void* stored, const SampleKey* key, float* out, float* scratch) const {
  float* const converted = transforms_->in_place() ? out : scratch;
  conversion_.convert_padded(stored, converted);
  if (!transforms_->empty()) transforms_->apply(converted, out, key, scratch);
}

void FeatureStages::apply_to_rows(std::int64_t count, const SampleKey* key, float* out, std::int64_t step,
                                  float* scratch) const {
  float* const rows = rows_in(scratch);
  float* const whitened = rows + whitening_.samples_together() * values_;
  const std::int64_t size = whitening_.shape().num_elements();
  whitening_.apply(rows, count, whitened);
  SampleKey own = key != nullptr ? *key : SampleKey{};
  for (std::int64_t i = 0; i < count; ++i) {
    float* const to = out + i * step;
    float* const values = transforms_->in_place() ? to : scratch;
    std::copy_n(whitened + i * size, size, values);
    if (!transforms_->empty()) transforms_->apply(values, to, key != nullptr ? &own : nullptr, scratch);
    ++own.place;
  }
}

}  // namespace lockstep
