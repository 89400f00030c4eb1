// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a reader gives: the form of its samples, their values or a store that reads them, and where they come
// from. opened_samples.h checks it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "data/bad_records.h"
#include "data/normalize_by.h"
#include "data/sample_checks.h"
#include "data/sample_store.h"
#include "data/sequence_form.h"

namespace lockstep {

struct TableInfo;
struct TextInfo;

/// The transformation of a feature value x of channel c: (x * scale + offset - mean[c]) / std[c], in float32,
/// in this order. `mean` and `std` have one value per channel (the last axis), one value for all channels, or
/// none.
struct FeatureTransform {
  float scale = 1.0F, offset = 0.0F;
  std::vector<float> mean, std;
  /// Not none: mean and std are those of the training set (ReaderDataset::fitted()).
  NormalizeBy normalize = NormalizeBy::none;
};

/// Data rows [first, last) of a file.
struct RowRange {
  std::int64_t first, last;
};

/// indices: int32 class numbers; rows: float32 targets.
enum class LabelKind { none, indices, rows };

/// The form of stored samples. Features keep the file's type: u8 stays u8.
struct StoredForm {
  std::int64_t size = 0;  ///< samples
  Shape feature_shape;    ///< of one sample, channels last
  DType feature_dtype = DType::f32;
  /// The distance between the starts of samples, in values; 0: the size of a sample. If smaller, samples
  /// overlap.
  std::int64_t feature_step = 0;
  std::int64_t num_label_columns = 0;
  /// The distance between the starts of the labels of samples; 0: the number of columns.
  std::int64_t label_step = 0;
  /// A reader without a store may leave it out: its values say it.
  LabelKind label_kind = LabelKind::none;

  std::int64_t values_per_sample() const { return feature_shape.num_elements(); }
  std::int64_t sample_bytes() const {
    return values_per_sample() * static_cast<std::int64_t>(size_in_bytes(feature_dtype));
  }
  // What follows needs the two steps.
  bool has_overlap() const { return feature_step != values_per_sample() || label_step != num_label_columns; }
  /// The values of all samples together.
  std::int64_t num_features() const { return (size - 1) * feature_step + values_per_sample(); }
  std::int64_t num_labels() const {
    return num_label_columns == 0 ? 0 : (size - 1) * label_step + num_label_columns;
  }
  std::int64_t feature_bytes() const {
    return num_features() * static_cast<std::int64_t>(size_in_bytes(feature_dtype));
  }
  /// The bytes of all values. The largest number, if there are more.
  std::int64_t size_bytes() const;
};

/// The channels of stored samples: the extent of the last axis; 1 of sequences of single values.
std::int64_t channels_of(const Shape& shape, bool is_sequence);

/// The result of a reader.
struct DatasetParts : SampleOrigin, StoredForm {
  Buffer features;                          ///< the values of all samples, as StoredForm says
  std::vector<std::int32_t> label_indices;  ///< num_labels(), or empty
  std::vector<float> label_rows;            ///< num_labels(), or empty
  /// Reads the values if `features`, `label_indices` and `label_rows` are empty, or if they take too much
  /// memory. Samples do not overlap.
  std::shared_ptr<SampleStore> store;
  std::vector<std::string> class_names;    ///< by class index or label column; empty: unknown
  std::shared_ptr<const TextInfo> text;    ///< text_info.h; null if the features are not text
  std::shared_ptr<const TableInfo> table;  ///< table_info.h; null if the files are no tables
  std::optional<SequenceForm> sequence;    ///< of sequences of different lengths
  /// Samples whose records are bad, ascending, of a reader that has read all of them: their values are 0.
  std::vector<BadRecord> bad;
  bool knows_bad = false;  ///< with a store: `bad` are all of them
  FeatureTransform transform;
  /// What leave_out() has left out of these samples: bad records of their own, and the number of samples.
  std::vector<BadRecord> left_out = {};
  std::int64_t num_left_out = 0;
};

/// Throws Error(data) about `source` if rows x `bytes_per_row` do not fit into this host's memory.
void check_memory(const std::string& source, std::int64_t rows, double bytes_per_row);

/// The rows that a reader delivers out of `available` rows. Throws Error(data) if `rows` is not within them.
RowRange checked_rows(const std::optional<RowRange>& rows, std::int64_t available, const std::string& source);

}  // namespace lockstep
