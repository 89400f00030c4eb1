// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A warm start takes initial values from a checkpoint of another run. Only a new run does so, because a run
// that continues has its own values. It takes variables only, because the slots of an optimizer belong to the
// run that made them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/params.h"
#include "io/checkpoint.h"
#include "io/checkpoint_names.h"

namespace lockstep {

class Communicator;
class VariableStore;

struct WarmStartOptions {
  std::string checkpoint;      ///< a file, or a run directory
  std::string which = "last";  ///< of a run directory: "last" or "best"
  NamePatterns variables;      ///< of this model; others keep their initial values
  NameRules rename;            ///< from this model's names to the checkpoint's
  bool averages = true;        ///< a variable takes its moving average, where the checkpoint has one
  bool strict = true;          ///< every matching variable must be there, with its shape
  std::string where = {};      ///< in the configuration
};

/// Options of the section `warm_start`.
std::span<const ParamSpec> warm_start_table();
/// `section` is checked against warm_start_table(). A relative path begins in `base_directory`. None if the
/// section names no checkpoint. Opens no file. Throws Error(config) with position.
std::optional<WarmStartOptions> warm_start_options(const Params& section, const std::string& base_directory);

/// What a warm start does with each variable of the model.
struct WarmStartReport {
  struct Item {
    std::string name;  ///< in this model
    std::string from;  ///< in the checkpoint
    std::string detail;
  };
  std::vector<Item> taken, missing, other_shape;
  std::vector<std::string> unmatched;  ///< of this model: no pattern matches them
  std::vector<std::string> unused;     ///< of the checkpoint: no variable takes them
  /// One line with counts, and a line for each variable that is not simply taken.
  std::string text() const;
  /// Every variable that was asked for is there, with its shape.
  bool complete() const { return missing.empty() && other_shape.empty(); }
};

/// Compares names and shapes; reads no values.
WarmStartReport plan_warm_start(const CheckpointFile& file, const VariableStore& variables,
                                const WarmStartOptions& options);

struct WarmStartSource {
  std::unique_ptr<CheckpointFile> file;
  WarmStartReport report;
};
/// Opens and verifies the checkpoint. This rank alone. Throws as warm_start() does.
WarmStartSource open_warm_start(const WarmStartOptions& options, const VariableStore& variables);

/// All ranks. The chief reads, decides and logs; all ranks get the values. Throws the same error on all
/// ranks: Error(checkpoint) if the file cannot be used, if nothing fits, or, when strict, if something is
/// missing or has another shape; Error(config) for a pattern or a rule that matches no variable of this
/// model.
void warm_start(Communicator& world, const WarmStartOptions& options, VariableStore& variables);

}  // namespace lockstep
