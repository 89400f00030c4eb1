// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of all readers. A reader turns files into DatasetParts. To add one, write a file that defines its
// ReaderEntry, a line in reader_table.cpp, a test and a line in the documentation.
//
// Errors are Error(data) with where = "file, line N" or "file, record N" (records count from 0, like `rows`).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "config/table.h"
#include "core/function_ref.h"
#include "data/dataset_memory.h"
#include "data/dataset_parts.h"

namespace lockstep {

class OpenedSamples;
class ReaderDataset;

/// The samples that `lockstep predict` asks a reader for: all rows of files of the same form as the training
/// data.
struct InputRequest {
  std::vector<std::string> paths;        ///< at least one; several are read as one
  Shape feature_shape;                   ///< of one sample, before transforms
  const TextInfo* text = nullptr;        ///< the training data's Dataset::text(), for readers of text
  const TableInfo* table = nullptr;      ///< the training data's Dataset::table(), for readers of tables
  std::vector<std::string> class_names;  ///< the training data's Dataset::class_names()
  bool labels = false;                   ///< read the labels, too, if the first file has them
};

struct ReaderEntry {
  std::string_view name;
  std::string_view help;
  /// The reader's options, including the common ones (path and form of the data; scale, offset, mean, std).
  std::span<const ParamSpec> table;
  DatasetParts (*make)(const Params& params, const std::string& base_directory);
  /// See open_input().
  DatasetParts (*make_input)(const Params& params, const InputRequest& request);
  /// Optional, for readers whose library may crash on a damaged file: does all of it that reading does, but
  /// reads only some of the values. `inputs` null: the files of the options; otherwise these files, as
  /// make_input. Calls opening(path) before each file. See try_data_files().
  void (*trial)(const Params& params, const std::string& base_directory,
                const std::vector<std::string>* inputs,
                FunctionRef<void(const std::string&)> opening) = nullptr;
  /// An input may be a folder: the reader looks into it. Otherwise a folder means the files in it.
  bool reads_folders = false;
  /// Optional, for data.stage_to: the files that make() opens for samples. Opens none of them.
  std::vector<std::string> (*files)(const Params& params, const std::string& base_directory) = nullptr;
  /// Optional, with `files`: throws Error(config) if reading one of them opens others, too.
  void (*check_alone)(const Params& params, const std::string& path) = nullptr;
  /// Optional, for readers whose samples depend on the training set, of which `train` are the options: opens
  /// the evaluation set. Null: make() does.
  DatasetParts (*make_evaluation)(const Params& params, const Params& train,
                                  const std::string& base_directory) = nullptr;
  /// Optional, for readers whose samples depend on the training set, or on a vocabulary: opens the evaluation
  /// set with the words, classes and lists of `trained`, whose files are not there. Null: make_evaluation()
  /// or make() does.
  DatasetParts (*make_as_trained)(const Params& params, const ReaderDataset& trained,
                                  const std::string& base_directory) = nullptr;
};

/// Lockstep's own readers, then those that add() added.
Table<ReaderEntry>& reader_table();
/// The entry of a format. Throws Error(config) at `where` for an unknown one and suggests the nearest.
const ReaderEntry& find_reader(std::string_view format, const std::string& where = {});
/// Reads a data set. `params` must have been checked with find_reader(format).table. Relative paths are
/// relative to `base_directory`, the folder of the configuration file ("": the current folder).
std::unique_ptr<ReaderDataset> open_dataset(std::string_view format, const Params& params,
                                            const std::string& base_directory, const DatasetUse& use = {});
/// Opens the evaluation set that goes with the training set that `train` means.
std::unique_ptr<ReaderDataset> open_evaluation_dataset(std::string_view format, const Params& params,
                                                       const Params& train, const std::string& base_directory,
                                                       const DatasetUse& use = {});

/// Reads samples for prediction. `params` are those of the training data. csv: files with or without the
/// label column, decided by the number of columns; idx: the images file, without labels; hdf5: files with the
/// same `features` dataset, with or without `labels`; npy: npy files of features, without labels, or npz
/// files; text_tsv: a line with the columns, or of text only; other texts: no labels. csv and hdf5 take
/// several files. Throws Error(data) if the samples have another shape, Error(config) for several files where
/// one is allowed.
std::unique_ptr<ReaderDataset> open_input(std::string_view format, const Params& params,
                                          const InputRequest& request, const DatasetUse& use = {});
/// The same in two steps, for what comes between the opening of the files and the reading of the values
/// (opened_samples.h).
OpenedSamples open_input_files(std::string_view format, const Params& params, const InputRequest& request);
std::unique_ptr<ReaderDataset> read_input_files(OpenedSamples opened, const Params& params,
                                                const DatasetUse& use = {});

}  // namespace lockstep
