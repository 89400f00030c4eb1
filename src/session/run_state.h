// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of a run that a checkpoint keeps: variables, slots, cursor; and its way to and from a file. The
// chief reads and writes files; all ranks follow.
#pragma once

#include <optional>
#include <string>

#include "comm/communicator.h"
#include "data/step_plan.h"
#include "io/checkpoint.h"
#include "model/variable_store.h"
#include "optim/optimizer.h"

namespace lockstep {

/// Views of all tensors of the state, in a fixed order. `optimizer` may be null: variables only. They are in
/// host memory, brought up to date; with `on_device`, where variables and optimizer are on a GPU, what the
/// update moves is left there and marked so, and only running statistics are brought.
std::vector<CheckpointTensor> state_tensors(const VariableStore& variables, const Optimizer* optimizer,
                                            bool on_device = false);

/// What the checkpoint of a run says about it: where it is, and the configuration as run.
CheckpointHeader run_header(std::int64_t step, Cursor cursor, int shards, std::uint64_t seed,
                            const std::string& config_text);

/// The checkpoint that a run continues from, as the chief found it; the same on all ranks.
struct FoundCheckpoint {
  std::string path;         ///< empty: there is none
  CheckpointHeader header;  ///< without digest and times
  bool deferred = false;    ///< it holds deferred calls (deferred_calls.h)
  bool exists() const { return !path.empty(); }
};

/// All ranks: the chief looks (in run_dir for the newest intact one, warning about damaged ones, or at `file`
/// if it is not empty), all get the answer. Throws the same Error(checkpoint) on all ranks.
FoundCheckpoint find_checkpoint(Communicator& world, const std::string& run_dir, const std::string& file);

/// All ranks: the chief reads the tensors, all get them. A checkpoint of another model throws
/// Error(checkpoint) that names what is missing or has another shape. `hook_state`
/// (HookContext::state()) may be missing, where a hook is new: it keeps its values, with a warning.
void restore_state(Communicator& world, const FoundCheckpoint& found, VariableStore& variables,
                   Optimizer* optimizer, std::span<const CheckpointTensor> hook_state = {});

}  // namespace lockstep
