// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of predictions: what each head of a model says about each sample, in the order of the samples.
//
//   .csv         a line per sample; columns are named for what they are (prediction_csv.cpp)
//   .h5, .hdf5   a dataset per quantity, and the true labels; a group per head if there are several
//                (prediction_hdf5.cpp)
//   .npy         one float32 array {samples, output...}; for a model with one head (prediction_npy.cpp)
//
// Rank 0 makes the file. Of HDF5, several processes can write the rows (PredictionPart); the file is the
// same. Names of columns and datasets are on-disk names: do not change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "io/output_file.h"

namespace lockstep {

/// The outputs of one head.
struct PredictedHead {
  std::string name;  ///< empty: the only head
  Shape shape;       ///< of one sample
  /// What a number is: "probability" (of an exclusive class), "logit" (before a sigmoid) or "value".
  std::string_view quantity = "value";
  bool has_classes = false;                   ///< the last axis has exclusive classes
  std::vector<std::string> class_names;       ///< of the last axis; empty: unknown
  std::vector<std::string> value_names = {};  ///< of each value: "price"; empty: they are numbered
  /// Why the values are in units of training; empty: they are in those of the data.
  std::string as_trained = {};
  bool has_spread = false;          ///< rows have the spread of an ensemble
  std::int64_t labels = 0;          ///< true labels of a sample; 0: they are not known
  bool labels_are_indices = false;  ///< int32 rather than float32

  std::int64_t values() const { return shape.num_elements(); }
  std::int64_t classes() const { return shape.rank() == 0 ? 1 : shape.last(); }
  std::int64_t positions() const { return values() / classes(); }
};

struct PredictionInfo {
  std::vector<PredictedHead> heads;
  std::int64_t samples = 0;
  std::int64_t global_step = 0;
  std::string checkpoint;         ///< path
  std::string checkpoint_digest;  ///< of its bits
  std::string input;              ///< path; several are separated by line breaks
  /// Where a sample comes from: "cats/1.png", "new.csv, line 7". Null: names are not written.
  std::function<std::string(std::int64_t)> sample_name = {};
  /// What the data call a sample, and the name of that column or dataset. Null: they have no such names.
  std::function<std::string(std::int64_t)> id = {};
  std::string id_name = {};
  /// The number of a sample in its file, by its place in this one. Null: the same, which CSV leaves out.
  std::function<std::int64_t(std::int64_t)> number = {};
};

/// Consecutive samples of one head.
struct PredictedRows {
  std::span<const float> outputs;      ///< n x values()
  std::span<const float> spread = {};  ///< likewise, with has_spread: standard deviation over the members
  // The true labels, n x labels; the other one of both is empty.
  std::span<const std::int32_t> label_indices = {};
  std::span<const float> label_values = {};
};

class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;
  /// The next `n` samples of each head. Throws Error(output).
  virtual void add(std::int64_t n, std::span<const PredictedRows> heads) = 0;
  /// Called after the last sample; OutputFile::publish() follows.
  virtual void finish() {}
  /// Where each dataset of rows begins in the file, for PredictionPart; empty: all rows come through add().
  virtual std::vector<std::uint64_t> offsets() const { return {}; }
};

/// Writes rows of a file of predictions in addition to its PredictionWriter, also from another process. The
/// writer must not get rows by add() then.
class PredictionPart {
 public:
  /// `path`: OutputFile::shared_path(). `offsets`: of the writer. Throws Error(output).
  PredictionPart(const std::string& path, std::vector<PredictedHead> heads,
                 std::vector<std::uint64_t> offsets, std::function<std::int64_t(std::int64_t)> number = {});
  ~PredictionPart();
  PredictionPart(const PredictionPart&) = delete;
  PredictionPart& operator=(const PredictionPart&) = delete;
  /// The samples [first, first + n) of each head. Throws Error(output).
  void add(std::int64_t first, std::int64_t n, std::span<const PredictedRows> heads);
  /// Makes the rows durable. Throws Error(output).
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The endings of files of predictions, for output_ending().
std::span<const std::string_view> prediction_endings();
/// True if files with this ending hold true labels, too.
bool holds_labels(std::string_view ending);
/// `ending` is one of prediction_endings(). `output` outlives the writer. Throws Error(config) if the format
/// cannot hold these heads.
std::unique_ptr<PredictionWriter> make_prediction_writer(std::string_view ending, OutputFile& output,
                                                         PredictionInfo info);

// One per format.
std::unique_ptr<PredictionWriter> make_prediction_csv(OutputFile& output, PredictionInfo info);
std::unique_ptr<PredictionWriter> make_prediction_hdf5(OutputFile& output, PredictionInfo info);
std::unique_ptr<PredictionWriter> make_prediction_npy(OutputFile& output, PredictionInfo info);

/// The class of one position: the index of the largest number, the first of equal ones; -1 if one is NaN.
std::int64_t largest_class(std::span<const float> position);

}  // namespace lockstep
