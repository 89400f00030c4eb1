// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_state.h"

#include <algorithm>

#include "comm/agree.h"
#include "core/log.h"
#include "core/version.h"
#include "io/checkpoint_store.h"
#include "session/deferred_calls.h"

namespace lockstep {

std::vector<CheckpointTensor> state_tensors(const VariableStore& variables, const Optimizer* optimizer,
                                            bool on_device) {
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
  if (optimizer == nullptr) return tensors;
  for (std::size_t slot = 0; slot < optimizer->slot_names().size(); ++slot)
    for (const Variable& variable : variables.variables())
      if (variable.trainable)
        tensors.push_back({fmt::format("slots/{}/{}", optimizer->slot_names()[slot], variable.name),
                           on_device ? there(optimizer->slot(slot) + variable.offset, variable)
                                     : optimizer->slot_tensor(slot, variable),
                           on_device});
  return tensors;
}

CheckpointHeader run_header(std::int64_t step, Cursor cursor, int shards, std::uint64_t seed,
                            const std::string& config_text) {
  return {.global_step = step,
          .epoch = cursor.epoch,
          .samples_consumed = cursor.samples_consumed,
          .shards = shards,
          .seed = seed,
          .config = config_text,
          .lockstep_version = std::string(kVersion)};
}

namespace {

void broadcast_text(Communicator& world, std::string& text, const char* what) {
  std::uint64_t size = text.size();
  world.broadcast(&size, sizeof size, 0, what);
  text.resize(size);
  if (size > 0) world.broadcast(text.data(), size, 0, what);
}

}  // namespace

FoundCheckpoint find_checkpoint(Communicator& world, const std::string& run_dir, const std::string& file) {
  FoundCheckpoint found;
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        if (file.empty()) {
          std::vector<std::string> damaged;
          found.path = CheckpointStore(run_dir, 0).newest_intact(&damaged).value_or("");
          for (const std::string& what : damaged) log_warning("skipped a damaged checkpoint: {}", what);
          if (found.path.empty() && !damaged.empty())
            throw Error(ErrorKind::checkpoint,
                        fmt::format("none of {} checkpoints is intact", damaged.size()), run_dir,
                        "Restore one from a backup, or start over with another --run-dir.");
        } else {
          found.path = file;
        }
        if (!found.exists()) return;
        const CheckpointFile checkpoint(found.path);
        if (!file.empty()) checkpoint.verify();
        found.header = checkpoint.header();
        found.deferred = checkpoint.has(DeferredCalls::kPath);
      },
      "looking for a checkpoint");
  broadcast_text(world, found.path, "path of the checkpoint");
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
  broadcast_text(world, found.header.config, "configuration in the checkpoint");
  return found;
}

namespace {

const CheckpointEntry* find_entry(const CheckpointFile& file, const std::string& path) {
  const auto found = std::ranges::find(file.entries(), path, &CheckpointEntry::path);
  return found == file.entries().end() ? nullptr : &*found;
}

/// One line per tensor that does not fit.
std::string misfits(const CheckpointFile& file, std::span<const CheckpointTensor> tensors) {
  std::string wrong;
  for (const CheckpointTensor& wanted : tensors) {
    const CheckpointEntry* entry = find_entry(file, wanted.path);
    if (entry == nullptr)
      wrong += fmt::format("\n  {} is not in it", wanted.path);
    else if (!(entry->shape == wanted.tensor.shape()))
      wrong += fmt::format("\n  {} is {} there, {} here", wanted.path, entry->shape.to_string(),
                           wanted.tensor.shape().to_string());
  }
  for (const CheckpointEntry& entry : file.entries())
    if (entry.path.starts_with("variables/") &&
        std::ranges::none_of(tensors, [&](const auto& t) { return t.path == entry.path; }))
      wrong += fmt::format("\n  {} is not in this model", entry.path);
  return wrong;
}

/// Reads the tensors that the file has in the same shape.
void read_hook_state(const CheckpointFile& file, std::span<const CheckpointTensor> hook_state) {
  for (const CheckpointTensor& wanted : hook_state) {
    const CheckpointEntry* entry = find_entry(file, wanted.path);
    if (entry != nullptr && entry->shape == wanted.tensor.shape() && entry->dtype == wanted.tensor.dtype())
      file.read_into(wanted.path, wanted.tensor);
    else
      log_warning("the checkpoint has no {} of this size: it keeps its initial values", wanted.path);
  }
}

}  // namespace

void restore_state(Communicator& world, const FoundCheckpoint& found, VariableStore& variables,
                   Optimizer* optimizer, std::span<const CheckpointTensor> hook_state) {
  std::vector<CheckpointTensor> tensors = state_tensors(variables, optimizer);
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        const CheckpointFile file(found.path);
        const std::string wrong = misfits(file, tensors);
        if (!wrong.empty())
          throw Error(ErrorKind::checkpoint, "this is a checkpoint of another model or optimizer:" + wrong,
                      found.path,
                      "Use the configuration that the run began with (config.yaml in its run directory), or "
                      "another --run-dir.");
        for (const CheckpointTensor& wanted : tensors) file.read_into(wanted.path, wanted.tensor);
        read_hook_state(file, hook_state);
      },
      "reading the checkpoint");
  tensors.insert(tensors.end(), hook_state.begin(), hook_state.end());
  for (const CheckpointTensor& tensor : tensors)
    world.broadcast(tensor.tensor.raw(), tensor.tensor.size_bytes(), 0, "restored variables");
  variables.to_device();
  if (optimizer != nullptr) optimizer->to_device();
  for (const Variable& variable : variables.variables())
    if (variable.saved) variables.mark_set(variables.find(variable.name));
}

}  // namespace lockstep
