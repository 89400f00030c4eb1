// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The first stage of features: stored values become float32, are scaled and normalised.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/channel_normalizer.h"
#include "data/dataset_parts.h"

namespace lockstep {

/// Completes parts.transform: mean and std are both given, or none is. Throws Error(data) about `source` if a
/// number is not finite, or if they do not match the channels.
void complete_transform(DatasetParts& parts, const std::string& source);

class FeatureConversion {
 public:
  /// For samples of this form. Needs complete_transform().
  FeatureConversion(const DatasetParts& parts, std::string source);

  NormalizeBy normalize_by() const { return transform_.normalize; }
  /// The means and standard deviations that normalized() takes.
  std::int64_t num_statistics() const;
  /// With the numbers of normalized().
  const FeatureTransform& transform() const { return transform_; }
  /// The numbers of a training set are used. Throws Error(data) if they are not those of such samples.
  FeatureConversion normalized(std::shared_ptr<const Normalization> values) const;
  /// Null: normalized() was not called.
  const std::shared_ptr<const Normalization>& normalization() const { return normalization_; }
  /// All numbers are known.
  bool is_complete() const { return normalize_by() == NormalizeBy::none || normalization_ != nullptr; }
  /// The values are scaled alone.
  bool only_scales() const { return normalizer_.empty(); }

  /// out = the values of one sample. The padding of a sequence is NaN.
  void convert(const void* stored, float* out) const;
  /// The same, and the padding of a sequence becomes its value.
  void convert_padded(const void* stored, float* out) const;

 private:
  template <typename T>
  void convert_from(const void* stored, float* out) const;

  Shape shape_;
  DType type_;
  std::int64_t values_;  ///< of a sample
  std::optional<SequenceForm> sequence_;
  FeatureTransform transform_;
  std::string source_;
  ChannelNormalizer normalizer_;
  std::shared_ptr<const Normalization> normalization_;
};

}  // namespace lockstep
