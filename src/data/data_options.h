// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `data` of a configuration: a reader, and its options for the training and the evaluation set.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/params.h"
#include "data/dataset.h"

namespace lockstep {

struct DataOptions {
  std::string format;          ///< name of the reader
  Params train;                ///< the reader's options for the training set
  std::optional<Params> eval;  ///< for the evaluation set; empty without one
};

/// The keys of the section besides the reader's options: format, train, eval.
std::span<const ParamSpec> data_table();
/// Reads the section `data`. The options next to `format` apply to both sets; the options under `train` and
/// `eval` override them. Opens no file. Throws Error(config) with a position.
DataOptions data_options(const Node& section);

/// Reads the training set. Relative paths are relative to `base_directory`.
std::unique_ptr<Dataset> open_training_set(const DataOptions& options, const std::string& base_directory);
/// Reads the evaluation set; returns null if there is none.
std::unique_ptr<Dataset> open_evaluation_set(const DataOptions& options, const std::string& base_directory);

}  // namespace lockstep
