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
  std::optional<Params> eval;  ///< for the evaluation set; none: there is no evaluation set
};

/// Keys of the section beside the reader's options: format, train, eval.
std::span<const ParamSpec> data_table();
/// Each set gets the options that stand beside `format`, overridden by the set's own. Opens no file. Throws
/// Error(config) with position.
DataOptions data_options(const Node& section);

/// Reads the training set. Relative paths begin in `base_directory`.
std::unique_ptr<Dataset> open_training_set(const DataOptions& options, const std::string& base_directory);
/// Null if there is no evaluation set.
std::unique_ptr<Dataset> open_evaluation_set(const DataOptions& options, const std::string& base_directory);

}  // namespace lockstep
