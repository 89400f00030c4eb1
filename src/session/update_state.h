// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How often variables were updated (Optimizer::kept_updates()), in checkpoints: updates/<variable>, float64.
// A checkpoint has it for those variables only whose number of updates is not that of the run's steps, or
// whose rule has a product that follows a schedule.
#pragma once

#include <string_view>
#include <vector>

#include "core/function_ref.h"
#include "io/checkpoint.h"

namespace lockstep {

class Communicator;
class Optimizer;
class VariableStore;
struct Variable;

/// The prefix of their paths: do not change.
inline constexpr std::string_view kUpdates = "updates/";

/// Adds the tensors of a checkpoint, in the order of the variables.
void add_updates(const VariableStore& variables, const Optimizer& optimizer,
                 std::vector<CheckpointTensor>& tensors);
/// All ranks; `file` is null but on the chief. A variable of which the file has no slot was frozen, or had
/// another rule: it has no updates. One of which it has slots, and no updates, was updated in each step.
/// `keeps` says, on the chief, whether the slots of a variable keep what they mean.
void restore_updates(Communicator& world, const CheckpointFile* file, const VariableStore& variables,
                     Optimizer& optimizer, FunctionRef<bool(const Variable&)> keeps);

}  // namespace lockstep
