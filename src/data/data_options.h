// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `data` of a configuration: a reader, and its options for the training and the evaluation set.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "core/error.h"
#include "data/choice_options.h"
#include "data/dataset_memory.h"
#include "data/sample_mixing.h"
#include "data/stage_options.h"
#include "data/transform_list.h"
#include "data/used_dataset.h"

namespace lockstep {

/// Where one input of the samples comes from.
struct DataInput {
  std::string name;            ///< that layers read it by; empty: the samples have one input, "features"
  std::string format;          ///< name of the reader
  Params train;                ///< the reader's options for the training set
  std::optional<Params> eval;  ///< for the evaluation set; empty without one
};

/// One of the files that the training set is mixed from (data.sources).
struct DataSource {
  std::string name, format;
  Params params;                ///< of the reader
  std::optional<double> share;  ///< of an epoch, relative to others; empty: sources are as large as they are
  std::string where;            ///< in the configuration
};

/// The first input, the others (data.inputs), targets, and which samples are used.
struct DataOptions : DataInput {
  std::vector<DataInput> others;
  /// The sets of a mixture, instead of the files of `train`, which are those of the first one; empty: no
  /// mixture.
  std::vector<DataSource> sources;
  std::vector<DataInput> targets;  ///< where labels come from (data.targets); empty: the reader's labels
  ChoiceOptions train_choice, eval_choice;
  std::optional<MixingOptions> mixing;
  StageOptions stage;
  /// Why no file may be opened in this process (try_data_files()); the functions below throw it.
  std::optional<Error> failure;
};

/// How many inputs there are, and one of them; 0 is the first.
std::size_t num_inputs(const DataOptions& options);
const DataInput& input_of(const DataOptions& options, std::size_t input);
/// All inputs, then the targets.
std::vector<const DataInput*> sets_of(const DataOptions& options);

/// The keys of the section in addition to the reader's options and those of choice_table() and stage_table():
/// format, inputs, sources, targets, train, eval.
std::span<const ParamSpec> data_table();
/// What an entry of data.sources has in addition to a reader's options.
std::span<const ParamSpec> source_table();
/// Reads the section `data`. The options next to `format` apply to both sets; the options under `train` and
/// `eval` override them. Opens no file. Throws Error(config) with a position.
DataOptions data_options(const Node& section);

/// The options of a split ("train" or "eval") as written: the common ones, overridden by the split's own.
/// Throws Error(config).
Node split_options(const Node& data, std::string_view split);
/// The options of an entry of data.inputs or data.targets: its options override the common ones, and its own
/// `train` or `eval` overrides them.
Node split_options(const Node& data, const Node& input, std::string_view split);
/// The options of an entry of data.sources, for the training set.
Node source_options(const Node& data, const Node& source);

/// Which files are tried.
struct DataTrial {
  bool train = true, eval = true;
};

/// Opens the files of both sets, and `files` of each of sets_of() (names and patterns, relative to the
/// current folder), in a child process and keeps in options.failure that the child crashed or did not end:
/// HDF5 can crash on a damaged file. Other errors are left to the functions below. Does nothing for readers
/// without a trial. For the chief, before MPI starts: a process with MPI must not fork. The error is for all
/// ranks, so that they end together.
void try_data_files(DataOptions& options, const std::string& base_directory,
                    std::span<const std::vector<std::string>> files = {}, DataTrial trial = {});

/// Opens the training set, all inputs joined. Relative paths are relative to `base_directory`.
UsedDataset open_training_set(const DataOptions& options, const std::string& base_directory,
                              const DatasetUse& use = {});
/// Opens the evaluation set; returns null if there is none.
UsedDataset open_evaluation_set(const DataOptions& options, const std::string& base_directory,
                                const DatasetUse& use = {});
}  // namespace lockstep
