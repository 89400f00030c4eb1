// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A set of samples as a model sees them: float32 features and labels of any samples, in any order. It is one
// reader's samples (reader_dataset.h), or several of these joined to one (joined_dataset.h). Nothing about it
// changes, and all threads may read it concurrently. Which of its samples are used is not its own
// (used_dataset.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/named_shape.h"
#include "core/shape.h"
#include "data/block_grid.h"
#include "data/dataset_parts.h"
#include "data/label_demand.h"
#include "data/transform.h"

namespace lockstep {

class ReaderDataset;
class SampleStream;

/// One reader's samples as an input or a target of a data set.
struct DatasetPart {
  std::string name;  ///< may be empty, of an only input
  const ReaderDataset* data;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  /// The number of samples.
  virtual std::int64_t size() const = 0;
  /// Shape of one sample; of a joined set, the number of all values.
  virtual const Shape& feature_shape() const = 0;
  virtual LabelKind label_kind() const = 0;
  /// The number of labels per sample: usually 1 for class indices, 0 without labels.
  virtual std::int64_t num_label_columns() const = 0;

  /// The inputs that a model gets. A set that is not joined has one, itself, without a name.
  virtual std::vector<DatasetPart> inputs() const = 0;
  /// The sets whose features are the labels; empty: the labels are those of a reader, and have no names.
  virtual std::vector<DatasetPart> targets() const { return {}; }
  /// The samples of the one reader; null: they are joined.
  virtual const ReaderDataset* single() const { return nullptr; }
  /// The labels are those of this input.
  virtual bool labels_come_from(std::size_t input) const = 0;
  /// The same set with other inputs and targets, as many and of the same form: what fitted() gave for them
  /// (reader_dataset.h). Null: the part stays.
  virtual std::shared_ptr<const Dataset> with_parts(
      std::vector<std::shared_ptr<const ReaderDataset>> parts) const = 0;

  /// The values of the sample samples[i] lie `step` values after those of the one before it in `out`.
  /// `scratch` has scratch_values(). `key` is that of samples[0]; the places of the others follow. Does not
  /// allocate.
  virtual void gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                               std::int64_t step, float* scratch) const = 0;
  virtual std::int64_t scratch_values() const = 0;
  /// out[i] = the labels of samples[i]. `out` has samples.size() x num_label_columns() values. Needs
  /// LabelKind::indices.
  virtual void gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const = 0;
  /// The same for float targets; class indices are converted. `key` and `scratch` are those of
  /// gather_features(): targets are transformed like inputs. Does not allocate.
  virtual void gather_labels(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                             float* scratch) const = 0;

  /// Bytes of all values, as they are kept.
  virtual std::int64_t size_bytes() const = 0;
  /// The bytes of them that are in memory; of a set that is read while it is used, that may be.
  virtual std::int64_t memory_bytes() const = 0;
  /// Samples that are read together. Does not depend on whether the set is in memory.
  virtual BlockGrid blocks() const = 0;
  /// Those that read the inputs and targets that are not in memory.
  virtual std::vector<SampleStream*> streams() const = 0;

  /// The vocabulary; null if the data is not text.
  virtual const TextInfo* text() const = 0;
  /// Which columns of a table the features and labels are; null if they are none, or the set is joined.
  virtual const TableInfo* table() const { return nullptr; }
  /// By class index or label column; empty if unknown.
  virtual const std::vector<std::string>& class_names() const = 0;
  /// Hexadecimal digits over all that the values depend on, but not file names. Ranks and jobs compare it.
  virtual const std::string& fingerprint() const = 0;
  /// The origin of a sample: "digits.csv.gz, line 17".
  virtual std::string where(std::int64_t sample) const = 0;
  /// Throws Error(data) that names the first record with a label that the demand does not allow. What is not
  /// in memory is checked when it is read.
  virtual void check_labels(const LabelDemand& demand) const = 0;

  /// What follows is made of the above.

  /// Inputs, then targets.
  std::vector<DatasetPart> parts() const;
  /// The names and shapes of inputs; of targets those of their parts of a label row.
  std::vector<NamedShape> input_shapes() const;
  std::vector<NamedShape> target_shapes() const;
  /// Features of samples one after the other.
  void gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                       float* scratch) const {
    gather_features(samples, key, out, feature_shape().num_elements(), scratch);
  }
  /// Labels for a place of no epoch. Allocates.
  void gather_labels(std::span<const std::int64_t> samples, float* out) const;
};

}  // namespace lockstep
