// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All readers, in one table. A reader turns files into a Dataset. To add one: one file that defines its
// ReaderEntry; one line in readers.cpp; one test; one line in the documentation.
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
  /// The reader's own options and those common to all (path and form of the data; scale, offset, mean, std).
  std::span<const ParamSpec> table;
  std::unique_ptr<Dataset> (*make)(const Params& params, const std::string& base_directory);
  /// See open_features(); `path` is resolved already.
  std::unique_ptr<Dataset> (*make_features)(const Params& params, const std::string& path,
                                            const Shape& feature_shape, const TextInfo* text);
};

/// Lockstep's own readers and those that register_reader() added.
std::span<const ReaderEntry> reader_table();
/// Adds a user's reader, before a data set is opened; its texts and table must live as long as the program.
/// Throws Error(config) if the name is taken.
void register_reader(const ReaderEntry& entry);
/// The entry of a format; throws Error(config) at `where` that suggests the nearest known one.
const ReaderEntry& find_reader(std::string_view format, const std::string& where = {});
/// Reads a data set. `params` were checked against find_reader(format).table. Relative paths are relative to
/// `base_directory`, the folder of the config file ("" is the current one).
std::unique_ptr<Dataset> open_dataset(std::string_view format, const Params& params,
                                      const std::string& base_directory);

/// Reads just features, of all rows, from another file of the same form, for prediction; `params` are the
/// training data's. `path`, relative to `base_directory`: csv: a file with or without the label column, which
/// the number of columns tells; idx: the images file; hdf5: a file with the same `features` dataset.
/// `feature_shape` is one sample's, as the model takes it; `text` is the training data's (Dataset::text()),
/// for readers of text. The result has no labels. Throws Error(data) if the file's samples have another
/// shape.
std::unique_ptr<Dataset> open_features(std::string_view format, const Params& params,
                                       const std::string& base_directory, const std::string& path,
                                       const Shape& feature_shape, const TextInfo* text = nullptr);

}  // namespace lockstep
