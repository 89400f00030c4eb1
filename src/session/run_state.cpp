// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_state.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>

#include "comm/agree.h"
#include "comm/share_text.h"
#include "core/fault.h"
#include "core/log.h"
#include "core/version.h"
#include "io/checkpoint_store.h"
#include "model/variable_store.h"
#include "optim/moving_average.h"
#include "optim/optimizer.h"
#include "session/checkpoint_choice.h"
#include "session/deferred_calls.h"
#include "session/distributed_state.h"
#include "session/kept_data.h"
#include "session/state_reader.h"
#include "session/update_state.h"

namespace lockstep {

std::vector<CheckpointTensor> state_tensors(const VariableStore& variables, const Optimizer* optimizer,
                                            bool on_device, const MovingAverage* average,
                                            DistributedState* distributed) {
  std::vector<CheckpointTensor> tensors;
  const auto there = [](float* values, const Variable& variable) {
    return Tensor(values, DType::f32, variable.shape);
  };
  for (std::size_t i = 0; i < variables.variables().size(); ++i) {
    const auto id = static_cast<VariableId>(i);
    const Variable& variable = variables[id];
    if (!variable.saved) continue;
    const bool stays = on_device && variable.trainable;
    tensors.push_back({"variables/" + variable.name,
                       stays ? there(variables.value(id), variable) : variables.tensor(id), stays});
  }
  if (optimizer != nullptr)
    for (std::size_t slot = 0; slot < optimizer->slot_names().size(); ++slot)
      for (const Variable& variable : variables.variables())
        if (variable.trainable && !optimizer->slot_name(slot, variable).empty() &&
            (optimizer->slots().held().empty() || variable.sparse_index >= 0))
          tensors.push_back({fmt::format("slots/{}/{}", optimizer->slot_name(slot, variable), variable.name),
                             on_device ? there(optimizer->slots().values(slot) + variable.offset, variable)
                                       : optimizer->slots().tensor(slot, variable),
                             on_device});
  if (optimizer != nullptr) add_updates(variables, *optimizer, tensors);
  if (distributed != nullptr) std::ranges::move(distributed->tensors(), std::back_inserter(tensors));
  if (average != nullptr)
    for (const Variable& variable : variables.variables())
      if (average->has(variable))
        tensors.push_back(
            {average_path(variable.name),
             on_device ? there(average->address(variable), variable) : average->tensor(variable), on_device});
  return tensors;
}

CheckpointHeader run_header(std::int64_t step, Cursor cursor, int shards, std::uint64_t seed,
                            const std::string& config_text, const std::string& computed_on,
                            std::shared_ptr<const KeptFiles> kept, KeptFiles settings) {
  return {.global_step = step,
          .epoch = cursor.epoch,
          .samples_consumed = cursor.samples_consumed,
          .shards = shards,
          .seed = seed,
          .config = config_text,
          .lockstep_version = std::string(kVersion),
          .computed_on = computed_on,
          .kept = std::move(kept),
          .settings = std::move(settings)};
}

KeptFiles settings_of_state(const RunClock& clock, const VariableStore& variables, const Optimizer* optimizer,
                            const MovingAverage* average, std::span<const StatePiece> hook_pieces) {
  StatePieces pieces;
  if (optimizer != nullptr) pieces.add(piece_of(*optimizer, variables));
  if (average != nullptr) pieces.add(piece_of(*average));
  for (const StatePiece& piece : hook_pieces) pieces.add(piece);
  KeptFiles settings{{std::string(kStateSettings), pieces.text()}};
  if (clock.knows_epochs()) settings.emplace(kClockSettings, clock.text());
  return settings;
}

namespace {

std::optional<CheckpointFile> choose(const std::string& run_dir, const std::string& file) {
  if (!file.empty() && file != kLastCheckpoint) return open_named_checkpoint(run_dir, file);
  std::vector<std::string> damaged;
  std::optional<CheckpointFile> newest = CheckpointStore(run_dir, 0).open_newest_intact(&damaged);
  for (const std::string& what : damaged) log_warning("skipped a damaged checkpoint: {}", what);
  if (!newest && !damaged.empty())
    throw Error(ErrorKind::checkpoint, fmt::format("none of {} checkpoints is intact", damaged.size()),
                run_dir, "Restore one from a backup, or start over with another --run-dir.");
  return newest;
}

}  // namespace

FoundCheckpoint find_checkpoint(Communicator& world, const std::string& run_dir, const std::string& file) {
  FoundCheckpoint found = open_checkpoint(world, run_dir, file);
  found.file.reset();
  return found;
}

FoundCheckpoint open_checkpoint(Communicator& world, const std::string& run_dir, const std::string& file) {
  FoundCheckpoint found;
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        std::optional<CheckpointFile> chosen = choose(run_dir, file);
        if (!chosen) return;
        found.file = std::make_shared<const CheckpointFile>(std::move(*chosen));
        found.path = found.file->path();
        found.header = found.file->header();
        found.deferred = found.file->has(DeferredCalls::kPath);
      },
      "looking for a checkpoint");
  found.path = broadcast_text(world, found.path, "path of the checkpoint");
  std::int64_t numbers[] = {found.header.global_step,
                            found.header.epoch,
                            found.header.samples_consumed,
                            found.header.shards,
                            static_cast<std::int64_t>(found.header.seed),
                            found.header.weights_only ? 1 : 0,
                            found.deferred ? 1 : 0};
  world.broadcast(numbers, sizeof numbers, 0, "header of the checkpoint");
  found.header.global_step = numbers[0];
  found.header.epoch = numbers[1];
  found.header.samples_consumed = numbers[2];
  found.header.shards = numbers[3];
  found.header.seed = static_cast<std::uint64_t>(numbers[4]);
  found.header.weights_only = numbers[5] != 0;
  found.deferred = numbers[6] != 0;
  found.header.config = broadcast_text(world, found.header.config, "configuration in the checkpoint");
  found.header.kept = broadcast_kept(world, found.header.kept);
  for (const std::string_view name : {kClockSettings, kStateSettings})
    found.header.settings[std::string(name)] =
        broadcast_text(world, found.header.setting(name), "settings of the state in the checkpoint");
  return found;
}

namespace {

/// On the chief, before it reads the tensors.
std::shared_ptr<const CheckpointFile> file_of(const FoundCheckpoint& found) {
  if (fault_is("removed_checkpoint")) std::filesystem::remove(found.path);
  return found.file != nullptr ? found.file : std::make_shared<const CheckpointFile>(found.path);
}

void broadcast(Communicator& world, std::span<const CheckpointTensor> tensors) {
  for (const CheckpointTensor& tensor : tensors)
    if (!tensor.pieces)
      world.broadcast(tensor.tensor.raw(), tensor.tensor.size_bytes(), 0, "restored variables");
}

void mark_restored(VariableStore& variables) {
  variables.to_device();
  for (const Variable& variable : variables.variables())
    if (variable.saved) variables.mark_set(variables.find(variable.name));
}

/// How far the average is, on all ranks: a broadcast of what the chief has decided.
void share_progress(Communicator& world, MovingAverage& average) {
  AverageProgress progress = average.progress();
  world.broadcast(&progress, sizeof progress, 0, "progress of the average");
  average.set_progress(progress);
}

}  // namespace

void require_model(Communicator& world, const FoundCheckpoint& found, const VariableStore& variables) {
  agree(
      world,
      [&] {
        if (world.rank() == 0) require_fit(CheckpointFile(found.path), state_tensors(variables, nullptr));
      },
      "comparing the checkpoint with the model");
}

std::vector<PieceOutcome> restore_state(Communicator& world, const FoundCheckpoint& found,
                                        VariableStore& variables, const RestoredState& state) {
  std::vector<CheckpointTensor> tensors =
      state_tensors(variables, state.optimizer, false, nullptr, state.distributed);
  std::erase_if(tensors, [](const auto& tensor) { return tensor.path.starts_with(kUpdates); });
  std::shared_ptr<const CheckpointFile> opened;
  std::optional<StateReader> reader;
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        opened = file_of(found);
        reader.emplace(*opened, variables, state);
        reader->read(tensors);
      },
      "reading the checkpoint");
  broadcast(world, tensors);
  broadcast(world, state.hooks);
  if (state.distributed != nullptr)
    state.distributed->restore([&](const std::string& path, const Tensor& to) {
      if (!reader->keeps({path, to, false})) return false;
      opened->read_into(path, to);
      return true;
    });
  if (state.average != nullptr) {
    share_progress(world, *state.average);
    for (const Variable& variable : variables.variables())
      if (state.average->has(variable)) {
        const Tensor tensor = state.average->tensor(variable);
        world.broadcast(tensor.raw(), tensor.size_bytes(), 0, "restored averages");
      }
    state.average->to_device();
  }
  if (state.optimizer != nullptr) {
    restore_updates(world, opened ? &*opened : nullptr, variables, *state.optimizer,
                    [&](const Variable& variable) { return reader->keeps_slots_of(variable); });
    state.optimizer->slots().to_device();
  }
  mark_restored(variables);
  return reader ? reader->outcomes() : std::vector<PieceOutcome>();
}

bool restore_variables(Communicator& world, const FoundCheckpoint& found, VariableStore& variables,
                       bool averages) {
  const std::vector<CheckpointTensor> tensors = state_tensors(variables, nullptr);
  bool averaged = false;
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        const std::shared_ptr<const CheckpointFile> opened = file_of(found);
        const CheckpointFile& file = *opened;
        require_fit(file, tensors);
        for (const CheckpointTensor& wanted : tensors) {
          const std::string average = average_path(wanted.path.substr(std::string_view("variables/").size()));
          const CheckpointEntry* entry = averages ? find_entry(file, average) : nullptr;
          const bool takes = entry != nullptr && entry->shape == wanted.tensor.shape();
          file.read_into(takes ? average : wanted.path, wanted.tensor);
          averaged = averaged || takes;
        }
      },
      "reading the checkpoint");
  broadcast(world, tensors);
  world.broadcast(&averaged, sizeof averaged, 0, "were there averages");
  mark_restored(variables);
  return averaged;
}

}  // namespace lockstep
