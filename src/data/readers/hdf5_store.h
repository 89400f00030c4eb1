// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: reads any samples of datasets in one or several files, which were opened and
// checked before.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "data/readers/hdf5_numbers.h"
#include "data/readers/sequence_rows.h"
#include "data/readers/text_classes.h"
#include "data/sample_store.h"

namespace lockstep {

/// The file of a dataset, and how long it was when it was opened. HDF5 delivers zeros beyond the end of a
/// file that became shorter.
class Hdf5FileLength {
 public:
  Hdf5FileLength() = default;
  /// The caller holds the Hdf5Lock.
  explicit Hdf5FileLength(const Hdf5Dataset& data);
  bool became_shorter() const;

 private:
  int descriptor_ = -1;  ///< of HDF5; -1: unknown
  std::int64_t bytes_ = 0;
};

/// The datasets of one file.
struct Hdf5Part {
  Hdf5Handle file;
  Hdf5Dataset features;
  std::optional<Hdf5Dataset> labels;
  bool sequences = false;  ///< features are sequences, which are read as float32
  Hdf5Numbers feature_numbers, label_numbers;
  Hdf5FileLength features_file, labels_file;

  /// Throws Error(data) if values from row `first` on may have been read beyond the end of a file.
  void require_length(std::int64_t first) const;

  /// Only features if `labels_name` is null. Throws Error(data). The caller holds the Hdf5Lock.
  /// `columns`: those of a table that are features; none: all with numbers but the labels. `samples_last`:
  /// the last axis counts samples.
  Hdf5Part(const std::string& path, const std::string& features_name, const std::string* labels_name,
           const NetcdfOptions& netcdf, const std::vector<std::string>& columns, bool samples_last);
  bool text_labels() const { return labels->file_class == H5T_STRING; }
  /// Labels are targets.
  bool float_labels() const;

 private:
  void check_same_count(bool samples_last);
};

/// Reads the bytes of the chunk that begins with row `start`, as they are stored. False: there is none.
bool read_stored_chunk(const Hdf5Dataset& data, std::int64_t start, std::vector<std::byte>& bytes,
                       unsigned& skipped);

/// What the store delivers.
struct Hdf5Form {
  std::string features_name;
  std::optional<std::string> labels_name;
  bool channels_first = false;  ///< in the files
  bool samples_last = false;    ///< in the files
  NetcdfOptions netcdf = {};
  DType feature_dtype = DType::f32;
  Shape feature_shape;  ///< channels last
  std::int64_t label_columns = 0;
  std::optional<SequenceRows> sequence = std::nullopt;
  std::vector<std::int64_t> channels = {};  ///< in this order; empty: all (hdf5_channels.h)
  std::vector<std::string> classes = {};    ///< of labels that are texts
  std::vector<std::string> columns = {};    ///< of a table
};

class Hdf5Store final : public SampleStore {
 public:
  /// Rows of a file, in the order of the samples.
  struct File {
    std::string path;
    RowRange rows;
  };
  /// `rows_per_chunk`: of the features of the first file.
  Hdf5Store(Hdf5Form form, std::vector<File> files, std::int64_t rows_per_chunk);
  ~Hdf5Store() override;

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override;
  std::int64_t samples_per_chunk() const override { return rows_per_chunk_; }

 private:
  std::shared_ptr<Hdf5Part> open(std::size_t file);
  void read_features(const Hdf5Part& part, const RowRange& rows, void* to) const;
  void read_as_stored(const Hdf5Part& part, const RowRange& rows, void* to) const;
  bool read_by_hdf5(const Hdf5Part& part, const RowRange& rows, void* to, bool any_way) const;
  void read_rows(const Hdf5Part& part, const RowRange& rows, void* to) const;
  void read_chosen_channels(const Hdf5Part& part, const RowRange& rows, void* to) const;
  void read_labels(const Hdf5Part& part, const RowRange& rows, const SampleRoom& to) const;
  void read_text_labels(const Hdf5Dataset& data, const RowRange& rows, std::int32_t* to) const;

  const Hdf5Form form_;
  const std::vector<File> files_;
  const std::int64_t rows_per_chunk_;
  TextClasses classes_;
  std::vector<std::int64_t> first_sample_;  ///< of each file
  // Under the Hdf5Lock.
  std::vector<std::shared_ptr<Hdf5Part>> parts_;  ///< null: not open
  std::vector<std::size_t> opened_;               ///< those that are open, the one used last at the end
};

}  // namespace lockstep
