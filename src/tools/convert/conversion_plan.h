// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep convert` writes: the files, which samples each has, and the options with which they are read
// again. Pure; all ranks have the same plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "core/range.h"
#include "io/sample_file.h"
#include "tools/convert/sample_source.h"

namespace lockstep {

/// The format by name ("hdf5", "png"), or, if it is empty, by the ending of the output. Throws Error(config).
SampleFormat sample_format(const std::string& name, const std::string& output);

struct ConversionPlan {
  std::string output;  ///< as given
  SampleFormat format = SampleFormat::hdf5;
  SampleFileOptions file = {};
  std::int64_t shards = 1;
  std::int64_t samples = 0;        ///< in all files
  std::int64_t chunk_samples = 1;  ///< of HDF5's chunks; 1 for other formats
  std::int64_t item_samples = 1;   ///< that a thread reads at a time: whole chunks
  bool labels = false;

  /// Chooses chunk_samples and item_samples: chunks of about 256 KiB, or of `chunk` samples.
  void choose_sizes(const SampleSource& source, std::optional<std::int64_t> chunk);
  Range samples_of(std::int64_t shard) const;
  /// A shard's files: features, and labels if they have a file of their own. "out.h5", or
  /// "out-00003-of-00008.h5". Of images: the list of them.
  std::vector<std::string> files(std::int64_t shard) const;
  /// The files of all shards: patterns, if there are several.
  std::vector<std::string> patterns() const;
  /// The text file of class names, for formats that have no place for them.
  std::string classes_path() const;
  /// A folder next to the output, in which finished shards are recorded.
  std::string records_folder() const;
  /// Finished shards are recorded.
  bool has_records() const { return shards > 1 || is_image(format); }
  /// Names of classes have a place in the output.
  bool names_classes() const { return format == SampleFormat::hdf5 || is_image(format); }
};

/// The number of shards of a conversion to images, which are divided by themselves.
std::int64_t image_shards(std::int64_t samples);

/// A section `data` that reads `files` (one or patterns; for npy those of labels, too), with the types and
/// labels of `source`.
Node section_of(const ConversionPlan& plan, const SampleSource& source,
                const std::vector<std::string>& files);

/// Adds to `section` what of `options` (of the source's set, as written) is about values: scale, mean,
/// transforms and the like. `transforms` false: they were applied already, so only mix is added.
void add_value_options(Node& section, const Node& options, bool transforms);

}  // namespace lockstep
