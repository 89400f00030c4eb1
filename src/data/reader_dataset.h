// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One reader's samples as a model sees them: stored samples and the stages that their features go through. A
// value: copies share the samples, and a method that gives another set leaves this one as it is. In its order
//
//   ReaderDataset set(samples);                            // StoredSamples
//   set = set.with_whitening(options).with_transforms(list, training);
//   set = set.fitted({normalization}).fitted({nullptr, whitening});
//
// each step is optional, but features are gathered only when all numbers that stages need are known.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/feature_stages.h"
#include "data/stored_samples.h"

namespace lockstep {

class ReaderDataset final : public Dataset {
 public:
  /// Samples that are scaled and normalised.
  explicit ReaderDataset(std::shared_ptr<const StoredSamples> samples);
  /// The same of what a reader gave. Throws as OpenedSamples and StoredSamples.
  explicit ReaderDataset(DatasetParts parts, const DatasetMemory& memory = {});

  /// See FeatureStages.
  ReaderDataset with_whitening(const WhitenOptions& options) const;
  ReaderDataset with_transforms(TransformList transforms, bool training) const;
  ReaderDataset fitted(const StageNumbers& numbers) const;

  const StoredSamples& stored() const { return *samples_; }
  const FeatureStages& stages() const { return stages_; }
  /// Shape of one sample as it is stored.
  const Shape& stored_shape() const { return stored().parts().feature_shape; }
  /// The type in memory; gathered features are always float32.
  DType feature_dtype() const { return stored().parts().feature_dtype; }
  /// How sequences of different lengths are padded; null: the samples are none.
  const SequenceForm* sequence() const;
  /// The steps of a sample before its padding. Needs sequence().
  std::int64_t sequence_length(std::int64_t sample) const { return stored().sequence_length(sample); }
  /// Null: the set is in memory.
  SampleStream* stream() const { return stored().stream(); }

  /// out = the features of one sample after scale and offset, not normalised. The padding of a sequence is
  /// NaN.
  void gather_scaled(std::int64_t sample, float* out) const;
  /// out = the features of one sample, normalised, not whitened and not transformed.
  void gather_unwhitened(std::int64_t sample, float* out) const;
  /// out = the features of one stored sample after all stages, with the fixed form of the transforms.
  /// `scratch` has scratch_values(). Throws Error(config) if the numbers of a stage are not known.
  void transform_stored(const void* sample, float* out, float* scratch) const;

  std::int64_t size() const override { return stored().size(); }
  const Shape& feature_shape() const override { return stages_.shape(); }
  LabelKind label_kind() const override { return stored().parts().label_kind; }
  std::int64_t num_label_columns() const override { return stored().parts().num_label_columns; }
  std::vector<DatasetPart> inputs() const override { return {{"", this}}; }
  const ReaderDataset* single() const override { return this; }
  bool labels_come_from(std::size_t input) const override {
    return input == 0 && label_kind() != LabelKind::none;
  }
  std::shared_ptr<const Dataset> with_parts(
      std::vector<std::shared_ptr<const ReaderDataset>> parts) const override;
  using Dataset::gather_features;
  void gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                       std::int64_t step, float* scratch) const override;
  std::int64_t scratch_values() const override { return stages_.scratch_values(); }
  using Dataset::gather_labels;
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const override;
  void gather_labels(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                     float* scratch) const override;
  std::int64_t size_bytes() const override { return stored().size_bytes(); }
  std::int64_t memory_bytes() const override { return stored().memory_bytes(); }
  BlockGrid blocks() const override { return stored().blocks(); }
  std::vector<SampleStream*> streams() const override;
  const TextInfo* text() const override { return text_.get(); }
  const std::shared_ptr<const TextInfo>& shared_text() const { return text_; }
  const TableInfo* table() const override { return stored().parts().table.get(); }
  const std::vector<std::string>& class_names() const override { return stored().parts().class_names; }
  const std::string& fingerprint() const override { return fingerprint_; }
  std::string where(std::int64_t sample) const override { return stored().where(sample); }
  void check_labels(const LabelDemand& demand) const override;

 private:
  void gather_whitened(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                       std::int64_t step, float* scratch) const;

  std::shared_ptr<const StoredSamples> samples_;
  FeatureStages stages_;
  std::shared_ptr<const TextInfo> text_;  ///< the reader's, or that of a transform
  std::string fingerprint_;
};

}  // namespace lockstep
