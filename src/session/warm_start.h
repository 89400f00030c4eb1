// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Initial values from another run's checkpoint, in place of random ones. Only a run that begins: one that
// continues has its own values. Variables alone: an optimizer's slots belong to the run that made them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/params.h"
#include "io/checkpoint.h"
#include "io/checkpoint_names.h"
#include "model/variable_store.h"

namespace lockstep {

struct WarmStartOptions {
  std::string checkpoint;  ///< a file, or a run directory for its newest intact one
  NamePatterns variables;  ///< of this model; others keep their initial values
  NameRules rename;        ///< from this model's names to the checkpoint's
  bool strict = true;      ///< every variable that is meant must be there, with its shape
};

/// Options of the section `warm_start`.
std::span<const ParamSpec> warm_start_table();
/// `section` is checked against warm_start_table(). A relative path begins in `base_directory`. None if the
/// section names no checkpoint. Opens no file. Throws Error(config) with position.
std::optional<WarmStartOptions> warm_start_options(const Params& section, const std::string& base_directory);

/// What a warm start finds for each variable of the model.
struct WarmStartReport {
  struct Item {
    std::string name;  ///< in this model
    std::string from;  ///< in the checkpoint
    std::string detail;
  };
  std::vector<Item> taken, missing, other_shape;
  std::vector<std::string> not_meant;   ///< of this model: no pattern matches them
  std::vector<std::string> not_wanted;  ///< of the checkpoint: nothing here takes them
  /// One line, and one more for each thing worth telling.
  std::string text() const;
};

/// Compares names and shapes; reads no values.
WarmStartReport plan_warm_start(const CheckpointFile& file, const VariableStore& variables,
                                const WarmStartOptions& options);

/// All ranks: the chief reads, decides and logs, all get the values. Throws the same Error(checkpoint) on all
/// if the file cannot be used, if nothing fits, or, when strict, if something is missing or has another
/// shape; Error(config) for a pattern or a rule that means no variable of this model.
void warm_start(Communicator& world, const WarmStartOptions& options, VariableStore& variables);

}  // namespace lockstep
