// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of a run that a checkpoint keeps (variables, slots, cursor), and how it is found and restored.
// The chief reads files; all ranks get the result.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/run_clock.h"
#include "data/cursor.h"
#include "io/checkpoint.h"
#include "session/state_settings.h"

namespace lockstep {

class Communicator;
class DistributedState;
class MovingAverage;
class Optimizer;
class VariableStore;

/// Views of all tensors of the state, in a fixed order: variables, slots of the optimizer, updates
/// (Optimizer::kept_updates()), averages.
/// `optimizer` and `average` may be null. The tensors are in host memory and up to date. With `on_device`,
/// where all of it is on a GPU, the tensors that the update changes stay there and are marked so; only
/// running statistics are copied to the host. `distributed` (null: none) is what lies on different
/// ranks: its bytes come in pieces.
std::vector<CheckpointTensor> state_tensors(const VariableStore& variables, const Optimizer* optimizer,
                                            bool on_device = false, const MovingAverage* average = nullptr,
                                            DistributedState* distributed = nullptr);

/// The header of a run's checkpoint: the position of the run, the configuration as run, what it keeps of its
/// data, and the settings of its state.
CheckpointHeader run_header(std::int64_t step, Cursor cursor, int shards, std::uint64_t seed,
                            const std::string& config_text, const std::string& computed_on = {},
                            std::shared_ptr<const KeptFiles> kept = {}, KeptFiles settings = {});
/// CheckpointHeader::settings of a run: its clock, and all pieces of its state. `optimizer` and `average` may
/// be null.
KeptFiles settings_of_state(const RunClock& clock, const VariableStore& variables, const Optimizer* optimizer,
                            const MovingAverage* average, std::span<const StatePiece> hook_pieces);

/// The checkpoint that a run continues from. The chief finds it; it is the same on all ranks.
struct FoundCheckpoint {
  std::string path;         ///< empty: there is none
  CheckpointHeader header;  ///< without digest and times
  bool deferred = false;    ///< it holds deferred calls (deferred_calls.h)
  /// The file itself on the chief of open_checkpoint(), which can be read when training has removed it; else
  /// null.
  std::shared_ptr<const CheckpointFile> file = nullptr;
  bool exists() const { return !path.empty(); }
};

/// All ranks. The chief looks at `file`; if that is empty, it takes the newest intact one in run_dir and
/// warns of damaged ones. Throws the same Error(checkpoint) on all ranks.
FoundCheckpoint find_checkpoint(Communicator& world, const std::string& run_dir, const std::string& file);

/// The same for a command that reads the checkpoints of a run which may be training at this time: the chief
/// keeps the file open.
FoundCheckpoint open_checkpoint(Communicator& world, const std::string& run_dir, const std::string& file);

/// All ranks. Throws Error(checkpoint) if the checkpoint is not one of a model with these variables.
void require_model(Communicator& world, const FoundCheckpoint& found, const VariableStore& variables);

/// What a checkpoint puts values into, next to the variables. All of it has its initial values.
struct RestoredState {
  Optimizer* optimizer = nullptr;
  MovingAverage* average = nullptr;
  std::span<const CheckpointTensor> hooks = {};  ///< HookContext::state()
  std::span<const StatePiece> hook_pieces = {};  ///< HookContext::state_pieces()
  DistributedState* distributed = nullptr;       ///< null: each rank has all of the state
  /// False: slots of another rule, and slots that the checkpoint does not have, are an error.
  bool accepts_changes = false;
};
/// All ranks. The chief reads the tensors and broadcasts them. A checkpoint of another model throws
/// Error(checkpoint), which names what is missing or has another shape. A piece of state whose settings are
/// others than in the checkpoint, or that the checkpoint does not have, keeps its initial values; averages
/// begin with the variables. The result says so, on the chief.
std::vector<PieceOutcome> restore_state(Communicator& world, const FoundCheckpoint& found,
                                        VariableStore& variables, const RestoredState& state);

/// Restores the variables alone. With `averages`, each takes the moving average of it that the checkpoint
/// has, if any. Returns whether any did.
bool restore_variables(Communicator& world, const FoundCheckpoint& found, VariableStore& variables,
                       bool averages);

}  // namespace lockstep
