// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Several readers' samples as one set whose samples have several inputs, and targets: sample i has the
// features of sample i of each input, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/reader_dataset.h"

namespace lockstep {

/// One input of samples with several, or one target.
struct JoinedInput {
  std::string name;  ///< may be empty, of an only input
  std::shared_ptr<const ReaderDataset> data;
};

class JoinedDataset final : public Dataset {
 public:
  /// Labels are those of the first input that has any. With `targets`, labels are the features of these sets,
  /// one after the other, as float32; inputs then have none. Throws Error(data) if the sets differ in their
  /// number of samples, or in labels that are in memory. All sets know their shape.
  explicit JoinedDataset(std::vector<JoinedInput> inputs, std::vector<JoinedInput> targets = {});

  std::int64_t size() const override { return labelled().size(); }
  const Shape& feature_shape() const override { return feature_shape_; }
  LabelKind label_kind() const override {
    return targets_.empty() ? labelled().label_kind() : LabelKind::rows;
  }
  std::int64_t num_label_columns() const override { return num_label_columns_; }
  std::vector<DatasetPart> inputs() const override { return parts_of(inputs_); }
  std::vector<DatasetPart> targets() const override { return parts_of(targets_); }
  bool labels_come_from(std::size_t input) const override {
    return input == label_input_ && label_kind() != LabelKind::none && targets_.empty();
  }
  std::shared_ptr<const Dataset> with_parts(
      std::vector<std::shared_ptr<const ReaderDataset>> parts) const override;
  using Dataset::gather_features;
  void gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                       std::int64_t step, float* scratch) const override;
  std::int64_t scratch_values() const override;
  using Dataset::gather_labels;
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const override;
  void gather_labels(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                     float* scratch) const override;
  std::int64_t size_bytes() const override;
  std::int64_t memory_bytes() const override;
  BlockGrid blocks() const override { return labelled().blocks(); }
  std::vector<SampleStream*> streams() const override;
  const TextInfo* text() const override { return text_; }
  const std::vector<std::string>& class_names() const override;
  const std::string& fingerprint() const override { return fingerprint_; }
  std::string where(std::int64_t sample) const override { return labelled().where(sample); }
  void check_labels(const LabelDemand& demand) const override;

 private:
  static std::vector<DatasetPart> parts_of(const std::vector<JoinedInput>& sets);
  /// The input with the labels; without labels the first one.
  const ReaderDataset& labelled() const { return *inputs_[label_input_].data; }
  void check_sizes() const;
  void check_labels_agree() const;
  /// The target that a label column belongs to, and the place of the column among its values.
  std::pair<std::size_t, std::int64_t> target_of(std::int64_t column) const;
  void check_targets(std::span<const std::int64_t> samples, const float* labels) const;
  void refuse_normalized(const LabelDemand& demand) const;
  void check_all_targets() const;

  std::vector<JoinedInput> inputs_, targets_;
  std::size_t label_input_ = 0;
  Shape feature_shape_;
  std::int64_t num_label_columns_ = 0;
  const TextInfo* text_ = nullptr;  ///< of the first part that has any
  std::string fingerprint_;
  /// What columns of targets must be: they are checked when they are gathered. Only check_labels() adds to
  /// them, before batches are made.
  mutable std::vector<LabelDemand> demands_;
};

}  // namespace lockstep
