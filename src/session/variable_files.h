// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Some variables of a run in a file that contains only weights, under names of their own, and back
// (TensorFlow's Saver with a list or a map of variables). The file is one for warm_start.checkpoint,
// `lockstep inspect` and `lockstep export`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"

namespace lockstep {

class Communicator;
class VariableStore;

/// Which variables, and their names in the file.
struct VariableChoice {
  /// Patterns for names of this model, as in warm_start.variables: "conv1/kernel", "conv*", "re:conv[12]/.*".
  std::vector<std::string> variables = {"*"};
  /// Pairs of a name of this model and the name in the file, as in warm_start.rename: {"conv1/kernel", "w"},
  /// {"conv1/", "backbone/conv1/"} for all of a scope. Others keep their names.
  std::vector<std::pair<std::string, std::string>> names = {};
};

/// Writes the present values. The chief writes; the file is complete or absent. `header`: of the run
/// (run_header()). All ranks. Throws SharedError: a pattern or name that fits no variable, two variables of
/// one name, an error of the disk.
void save_variables(Communicator& control, const VariableStore& variables, const CheckpointHeader& header,
                    const std::string& path, const VariableChoice& choice);
/// Sets the variables from such a file, from a checkpoint, or from the newest one of a run directory. Every
/// chosen variable must be there with its shape. All ranks. Throws SharedError.
void restore_variables(Communicator& control, VariableStore& variables, const std::string& path,
                       const VariableChoice& choice);

}  // namespace lockstep
