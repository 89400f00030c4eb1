// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A set of samples in memory. A reader (reader_table.h) creates it from files. Every rank holds all of it;
// the step plan selects the samples of a step. Features keep the file's type (u8 stays u8) and are converted
// to float32, scaled and normalised when they are gathered. Immutable, so all threads may read it
// concurrently.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/dtype.h"
#include "core/label_rule.h"
#include "core/shape.h"

namespace lockstep {

struct TextInfo;

/// The transformation of a feature value x of channel c: (x * scale + offset - mean[c]) / std[c], in float32,
/// in this order. `mean` and `std` have one value per channel (the last axis), one value for all channels, or
/// none.
struct FeatureTransform {
  float scale = 1.0F, offset = 0.0F;
  std::vector<float> mean, std;
};

/// Data rows [first, last) of a file.
struct RowRange {
  std::int64_t first, last;
};

/// indices: int32 class numbers; rows: float32 targets.
enum class LabelKind { none, indices, rows };

/// One of several files: its samples begin at `first_sample`, with the record `first_record`.
struct DatasetFile {
  std::string name;
  std::int64_t first_sample, first_record;
};

/// The result of a reader. Sample i is record `first_record + i` of `source`, or a record of one of `files`.
struct DatasetParts {
  std::string source;              ///< file name for messages
  std::vector<DatasetFile> files;  ///< by first_sample; empty: all samples are of `source`
  std::string record_word;         ///< "line" or "record"
  std::int64_t first_record = 0;
  std::int64_t size = 0;
  Shape feature_shape;  ///< of one sample, channels last
  DType feature_dtype = DType::f32;
  Buffer features;  ///< size x feature_shape, dense if feature_step is 0
  /// The distance between the starts of samples, in values; 0: the size of a sample. If smaller, samples
  /// overlap.
  std::int64_t feature_step = 0;
  std::int64_t num_label_columns = 0;
  std::vector<std::int32_t> label_indices;  ///< size x num_label_columns, or empty
  std::vector<float> label_rows;            ///< size x num_label_columns, or empty
  /// The same for label_indices.
  std::int64_t label_step = 0;
  /// The record of each sample if records are not consecutive; otherwise empty.
  std::vector<std::int64_t> records;
  std::shared_ptr<const TextInfo> text;  ///< text_info.h; null if the features are not text
  FeatureTransform transform;
};

class Dataset {
 public:
  /// Checks that the parts are consistent, that float features and labels are finite, and that mean and std
  /// match the channels. Throws Error(data).
  explicit Dataset(DatasetParts parts);

  std::int64_t size() const { return parts_.size; }
  /// Shape of one sample.
  const Shape& feature_shape() const { return parts_.feature_shape; }
  /// The type in memory; gathered features are always float32.
  DType feature_dtype() const { return parts_.feature_dtype; }
  LabelKind label_kind() const { return label_kind_; }
  /// The number of labels per sample: usually 1 for class indices, 0 without labels.
  std::int64_t num_label_columns() const { return parts_.num_label_columns; }

  /// out[i] = the transformed features of samples[i]. `out` has samples.size() x feature_shape() values. Does
  /// not allocate.
  void gather_features(std::span<const std::int64_t> samples, float* out) const;
  /// out[i] = the labels of samples[i]. `out` has samples.size() x num_label_columns() values. Needs
  /// LabelKind::indices.
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const;
  /// The same for float targets; class indices are converted.
  void gather_labels(std::span<const std::int64_t> samples, float* out) const;

  /// The vocabulary and the class names; null if the data is not text.
  const TextInfo* text() const { return parts_.text.get(); }

  /// 16 hexadecimal digits over data, types, shapes, transform, vocabulary and class names, but not file
  /// names. Ranks compare it.
  const std::string& fingerprint() const { return fingerprint_; }
  /// The origin of a sample: "digits.csv.gz, line 17".
  std::string where(std::int64_t sample) const;
  /// Throws Error(data) that names the first record with a label in columns [first, last) that the rule does
  /// not allow.
  void check_labels(const LabelRule& rule, std::int64_t first, std::int64_t last) const;
  /// The same for all columns.
  void check_labels(const LabelRule& rule) const { check_labels(rule, 0, parts_.num_label_columns); }

 private:
  template <typename T>
  void gather(std::span<const std::int64_t> samples, float* out) const;
  void check_finite() const;
  void prepare_normalisation();
  std::string computed_fingerprint() const;

  DatasetParts parts_;
  LabelKind label_kind_ = LabelKind::none;
  std::int64_t elements_per_sample_ = 0;
  std::int64_t num_features_ = 0;  ///< values in memory
  /// mean and std, repeated over whole pixels to a length that vectorises; empty without normalisation.
  std::vector<float> mean_pattern_, std_pattern_;
  std::string fingerprint_;
};

/// The rows that a reader delivers out of `available` rows. Throws Error(data) if `rows` is not within them.
RowRange checked_rows(const std::optional<RowRange>& rows, std::int64_t available, const std::string& source);

}  // namespace lockstep
