// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of all readers. A reader turns files into a Dataset. To add one, write a file that defines its
// ReaderEntry, a line in reader_table.cpp, a test and a line in the documentation.
//
// Errors are Error(data) with where = "file, line N" or "file, record N" (records count from 0, like `rows`).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/params.h"
#include "data/dataset.h"

namespace lockstep {

struct ReaderEntry {
  std::string_view name;
  std::string_view help;
  /// The reader's options, including the common ones (path and form of the data; scale, offset, mean, std).
  std::span<const ParamSpec> table;
  std::unique_ptr<Dataset> (*make)(const Params& params, const std::string& base_directory);
  /// See open_features(); `path` is already resolved.
  std::unique_ptr<Dataset> (*make_features)(const Params& params, const std::string& path,
                                            const Shape& feature_shape, const TextInfo* text);
};

/// All readers: the built-in ones and those added by register_reader().
std::span<const ReaderEntry> reader_table();
/// Adds a user's reader. Call it before a data set is opened. The texts and the table must live as long as
/// the program. Throws Error(config) if the name is already used.
void register_reader(const ReaderEntry& entry);
/// The entry of a format. Throws Error(config) at `where` for an unknown one and suggests the nearest.
const ReaderEntry& find_reader(std::string_view format, const std::string& where = {});
/// Reads a data set. `params` must have been checked with find_reader(format).table. Relative paths are
/// relative to `base_directory`, the folder of the configuration file ("": the current folder).
std::unique_ptr<Dataset> open_dataset(std::string_view format, const Params& params,
                                      const std::string& base_directory);

/// Reads only the features, of all rows, from another file of the same form, for prediction. `params` are
/// those of the training data. `path` is relative to `base_directory`. csv: a file with or without the label
/// column, decided by the number of columns; idx: the images file; hdf5: a file with the same `features`
/// dataset. `feature_shape` is the model's shape of one sample. `text` is the training data's
/// Dataset::text(), for readers of text. The result has no labels. Throws Error(data) if the file's samples
/// have another shape.
std::unique_ptr<Dataset> open_features(std::string_view format, const Params& params,
                                       const std::string& base_directory, const std::string& path,
                                       const Shape& feature_shape, const TextInfo* text = nullptr);

}  // namespace lockstep
