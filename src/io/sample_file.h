// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of samples, as `lockstep convert` writes them: features of one type and shape, and labels.
//
//   hdf5       datasets {samples, shape...} in chunks of whole samples, and {samples} or {samples, columns}
//              (sample_hdf5.cpp)
//   npy        one array per file: features, and labels (sample_npy.cpp)
//   npz        both arrays in one file, not compressed (sample_npy.cpp)
//   tfrecord   a tf.Example per sample (sample_tfrecord.cpp)
//   csv        a line per sample, with a header; the label is the last column (sample_csv.cpp)
//
// Threads encode blocks side by side, one thread writes them in order: encode() is a function of the block
// alone. Names in the files are on-disk names: do not change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace lockstep {

enum class SampleFormat { hdf5, npy, npz, tfrecord, csv, png, jpeg };
/// A folder of images, one per sample, which is no file of samples.
inline bool is_image(SampleFormat format) {
  return format == SampleFormat::png || format == SampleFormat::jpeg;
}

struct SampleFileOptions {
  std::string features = "features", labels = "labels";  ///< names of datasets, arrays and features
  int gzip = 0;                                          ///< level 1 to 9; 0: not compressed
  bool fletcher32 = false;                               ///< HDF5's checksum of each chunk
  char delimiter = ',';                                  ///< csv
  int quality = 95;                                      ///< jpeg
};

/// What all samples of a file have in common.
struct SampleFileForm {
  std::int64_t samples = 0;
  Shape shape;  ///< of one sample
  DType type = DType::f32;
  std::int64_t label_columns = 0;  ///< 0: no labels
  bool labels_are_indices = false;
  std::int64_t chunk_samples = 1;        ///< hdf5
  std::vector<std::string> class_names;  ///< hdf5; may be empty
  std::string source_fingerprint;        ///< hdf5

  std::int64_t sample_bytes() const {
    return shape.num_elements() * static_cast<std::int64_t>(size_in_bytes(type));
  }
};

/// Consecutive samples. What a set does not have is null.
struct SampleBlock {
  std::int64_t count = 0;
  const void* features = nullptr;
  const std::int32_t* label_indices = nullptr;
  const float* label_rows = nullptr;
};

/// A block as it is stored; what the pieces are is the format's.
struct EncodedBlock {
  std::int64_t count = 0;
  std::vector<std::string> pieces;
  std::vector<unsigned> skipped_filters;  ///< hdf5: of each chunk
};

class SampleWriter {
 public:
  virtual ~SampleWriter() = default;
  /// Any thread. A block begins at a multiple of form.chunk_samples.
  virtual EncodedBlock encode(const SampleBlock& block) const = 0;
  /// The next block. Throws Error(output).
  virtual void write(const EncodedBlock& block) = 0;
  /// Called after the last block; then the files are complete and on the disk. Throws Error(output).
  virtual void finish() = 0;
};

/// The type in which a format keeps features of a type; values are the same. csv has decimal numbers, which
/// are read as float32.
DType stored_type(SampleFormat format, DType type);
/// Files per set of samples: 2 for npy with labels, else 1.
int files_of(SampleFormat format, bool labels);

/// Creates the files `paths`, which appear with finish(). Throws Error(config) for a form that the format
/// cannot hold, or a path that cannot be written.
std::unique_ptr<SampleWriter> make_sample_writer(SampleFormat format, const std::vector<std::string>& paths,
                                                 SampleFileForm form, const SampleFileOptions& options);

// One per format.
std::unique_ptr<SampleWriter> make_sample_hdf5(const std::string& path, SampleFileForm form,
                                               const SampleFileOptions& options);
std::unique_ptr<SampleWriter> make_sample_npy(const std::vector<std::string>& paths, SampleFileForm form);
std::unique_ptr<SampleWriter> make_sample_npz(const std::string& path, SampleFileForm form,
                                              const SampleFileOptions& options);
std::unique_ptr<SampleWriter> make_sample_tfrecord(const std::string& path, SampleFileForm form,
                                                   const SampleFileOptions& options);
std::unique_ptr<SampleWriter> make_sample_csv(const std::string& path, SampleFileForm form,
                                              const SampleFileOptions& options);

/// The labels of a block as bytes, one after the other.
std::string label_bytes(const SampleFileForm& form, const SampleBlock& block);

}  // namespace lockstep
