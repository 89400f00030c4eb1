// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the features of a sample on the way from its stored values to a batch: they are converted,
// whitened, and transformed, in this order. Two stages may need numbers of the training set, which are
// computed later. A value: each method gives other stages, which share what is large.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/feature_conversion.h"
#include "data/transform_list.h"
#include "data/whiten_stage.h"

namespace lockstep {

/// Numbers of a training set; null: the stage has them already, or needs none.
struct StageNumbers {
  std::shared_ptr<const Normalization> normalization = nullptr;
  std::shared_ptr<const Whitening> whitening = nullptr;
};

class FeatureStages {
 public:
  /// The conversion alone. `parts`: with complete_transform().
  FeatureStages(const DatasetParts& parts, const std::string& source);

  /// The stages with whitening, and without transforms. Throws Error(config) if the samples cannot be
  /// whitened so.
  FeatureStages with_whitening(const WhitenOptions& options) const;
  /// The stages with these transforms instead of their own. `training`: random transforms act, otherwise
  /// their fixed form. Throws Error(config) if a transform cannot take the samples.
  FeatureStages with_transforms(std::shared_ptr<TransformList> transforms, bool training) const;
  /// The stages with numbers of a training set. Throws Error(data) if they are not those of such samples.
  FeatureStages fitted(const StageNumbers& numbers) const;

  const FeatureConversion& conversion() const { return conversion_; }
  const WhitenStage& whitening() const { return whitening_; }
  const TransformList& transforms() const { return *transforms_; }
  /// All numbers are known.
  bool are_fitted() const { return conversion_.is_complete() && whitening_.is_complete(); }
  /// The numbers that fitted() has got.
  StageNumbers numbers() const;
  /// False if the shape depends on numbers that are not known yet.
  bool knows_shape() const { return whitening_.knows_shape(); }
  /// Shape of one sample after all stages. Needs knows_shape().
  const Shape& shape() const { return transforms_->empty() ? whitening_.shape() : transforms_->shape(); }
  /// Values that the methods below use in `scratch`.
  std::int64_t scratch_values() const;

  /// Without whitening: one stored sample into `out`. `key` null: the fixed form of random transforms.
  void apply(const void* stored, const SampleKey* key, float* out, float* scratch) const;
  /// With whitening: samples go through it together. They are converted to the rows in `scratch`, of
  /// whitening().samples_together() stored samples.
  float* rows_in(float* scratch) const { return scratch + transforms_->scratch_values(); }
  /// Whitens and transforms the first `count` rows, which are used up. Samples are `step` values apart in
  /// `out`. `key`: of the first one, or null.
  void apply_to_rows(std::int64_t count, const SampleKey* key, float* out, std::int64_t step,
                     float* scratch) const;
  /// The key that transforms get: null, unless `training`.
  const SampleKey* acting(const SampleKey& key) const { return training_ ? &key : nullptr; }

 private:
  std::string source_;
  bool is_text_, is_sequence_;
  std::int64_t values_;  ///< of a stored sample
  FeatureConversion conversion_;
  WhitenStage whitening_;
  /// Prepared as soon as the shape of their input is known.
  std::shared_ptr<TransformList> transforms_ = std::make_shared<TransformList>();
  bool training_ = false;
};

}  // namespace lockstep
