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

#include "core/error.h"
#include "core/params.h"
#include "data/choice_options.h"
#include "data/dataset.h"

namespace lockstep {

struct DataOptions {
  std::string format;          ///< name of the reader
  Params train;                ///< the reader's options for the training set
  std::optional<Params> eval;  ///< for the evaluation set; empty without one
  ChoiceOptions train_choice, eval_choice;
  /// Why no file may be opened in this process (try_data_files()); the functions below throw it.
  std::optional<Error> failure;
};

/// The keys of the section besides the reader's options and those of choice_table(): format, train, eval.
std::span<const ParamSpec> data_table();
/// Reads the section `data`. The options next to `format` apply to both sets; the options under `train` and
/// `eval` override them. Opens no file. Throws Error(config) with a position.
DataOptions data_options(const Node& section);

/// The options of a split ("train" or "eval") as written: the common ones, overridden by the split's own.
/// Throws Error(config).
Node split_options(const Node& data, std::string_view split);

/// Opens the files of both sets, and `inputs` (names and patterns, relative to the current folder), in a
/// child process and keeps in options.failure that the child crashed or did not end: HDF5 can crash on a
/// damaged file. Other errors are left to the functions below. Does nothing for readers without a trial. For
/// the chief, before MPI starts: a process with MPI must not fork. The error is for all ranks, so that they
/// end together.
void try_data_files(DataOptions& options, const std::string& base_directory,
                    std::span<const std::string> inputs = {});

/// Opens the training set. Relative paths are relative to `base_directory`.
std::unique_ptr<Dataset> open_training_set(const DataOptions& options, const std::string& base_directory,
                                           const DatasetUse& use = {});
/// Opens the evaluation set; returns null if there is none.
std::unique_ptr<Dataset> open_evaluation_set(const DataOptions& options, const std::string& base_directory,
                                             const DatasetUse& use = {});

}  // namespace lockstep
