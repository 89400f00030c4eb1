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
            (optimizer->held().empty() || variable.sparse_index >= 0))
          tensors.push_back({fmt::format("slots/{}/{}", optimizer->slot_name(slot, variable), variable.name),
                             on_device ? there(optimizer->slot(slot) + variable.offset, variable)
                                       : optimizer->slot_tensor(slot, variable),
                             on_device});
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
                            std::shared_ptr<const KeptFiles> kept) {
  return {.global_step = step,
          .epoch = cursor.epoch,
          .samples_consumed = cursor.samples_consumed,
          .shards = shards,
          .seed = seed,
          .config = config_text,
          .lockstep_version = std::string(kVersion),
          .computed_on = computed_on,
          .kept = std::move(kept)};
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
  return found;
}

namespace {

/// On the chief, before it reads the tensors.
std::shared_ptr<const CheckpointFile> file_of(const FoundCheckpoint& found) {
  if (fault_is("removed_checkpoint")) std::filesystem::remove(found.path);
  return found.file != nullptr ? found.file : std::make_shared<const CheckpointFile>(found.path);
}

const CheckpointEntry* find_entry(const CheckpointFile& file, const std::string& path) {
  const auto found = std::ranges::find(file.entries(), path, &CheckpointEntry::path);
  return found == file.entries().end() ? nullptr : &*found;
}

/// Whether the variable of this slot was frozen, or had another rule, in the run that wrote the file: the
/// file has slots of this name, but not of this variable.
bool had_no_slot(const CheckpointFile& file, const std::string& path) {
  if (!path.starts_with("slots/") || find_entry(file, path) != nullptr) return false;
  const std::size_t end = path.find('/', std::string_view("slots/").size()) + 1;
  const std::string slot = path.substr(0, end);
  return find_entry(file, "variables/" + path.substr(end)) != nullptr &&
         std::ranges::any_of(file.entries(), [&](const auto& entry) { return entry.path.starts_with(slot); });
}

/// Residuals of another tree, or of a run that did not keep them.
bool has_no_residuals(const CheckpointFile& file, const CheckpointTensor& tensor) {
  if (!tensor.path.starts_with(kResiduals)) return false;
  const CheckpointEntry* const entry = find_entry(file, tensor.path);
  return entry == nullptr || !(entry->shape == tensor.tensor.shape());
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

namespace {

/// Reads the averages; those that the file does not have become the variables.
void read_averages(const CheckpointFile& file, const VariableStore& variables, const MovingAverage& average) {
  std::size_t missing = 0;
  for (std::size_t i = 0; i < variables.variables().size(); ++i) {
    const auto id = static_cast<VariableId>(i);
    const Variable& variable = variables[id];
    if (!average.has(variable)) continue;
    const Tensor to = average.tensor(variable);
    const CheckpointEntry* entry = find_entry(file, average_path(variable.name));
    if (entry != nullptr && entry->shape == variable.shape) {
      file.read_into(entry->path, to);
    } else {
      std::memcpy(to.raw(), variables.tensor(id).raw(), to.size_bytes());
      ++missing;
    }
  }
  if (missing > 0 && average.rule().has_begun(file.header().global_step))
    log_warning("the checkpoint has no moving average of {} variables: they begin with the variables",
                missing);
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

/// Throws Error(checkpoint) if a tensor does not fit.
void require_fit(const CheckpointFile& file, std::span<const CheckpointTensor> tensors) {
  const std::string wrong = misfits(file, tensors);
  if (!wrong.empty())
    throw Error(ErrorKind::checkpoint, "this is a checkpoint of another model or optimizer:" + wrong,
                file.path(),
                "Use the configuration that the run began with (config.yaml in its run directory), or "
                "another --run-dir.");
}

}  // namespace

void restore_state(Communicator& world, const FoundCheckpoint& found, VariableStore& variables,
                   Optimizer* optimizer, MovingAverage* average, std::span<const CheckpointTensor> hook_state,
                   DistributedState* distributed) {
  const std::vector<CheckpointTensor> tensors =
      state_tensors(variables, optimizer, false, nullptr, distributed);
  std::shared_ptr<const CheckpointFile> opened;
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        opened = file_of(found);
        const CheckpointFile& file = *opened;
        std::vector<CheckpointTensor> there = tensors;
        const std::size_t fresh =
            std::erase_if(there, [&](const auto& tensor) { return had_no_slot(file, tensor.path); });
        if (fresh > 0)
          log_info("{} slots of variables that were frozen or had another rule begin at their initial values",
                   fresh);
        if (std::erase_if(there, [&](const auto& tensor) { return has_no_residuals(file, tensor); }) > 0)
          log_warning("the checkpoint has no residuals of this tree: error feedback begins at 0");
        require_fit(file, there);
        for (const CheckpointTensor& wanted : there)
          if (!wanted.pieces) file.read_into(wanted.path, wanted.tensor);
        read_hook_state(file, hook_state);
        if (average != nullptr) read_averages(file, variables, *average);
      },
      "reading the checkpoint");
  broadcast(world, tensors);
  broadcast(world, hook_state);
  if (distributed != nullptr)
    distributed->restore([&](const std::string& path, const Tensor& to) {
      if (!opened->has(path)) return false;  // the variable was frozen
      if (has_no_residuals(*opened, {path, to, false})) return false;
      opened->read_into(path, to);
      return true;
    });
  if (average != nullptr)
    for (const Variable& variable : variables.variables())
      if (average->has(variable)) {
        const Tensor tensor = average->tensor(variable);
        world.broadcast(tensor.raw(), tensor.size_bytes(), 0, "restored averages");
      }
  if (optimizer != nullptr) optimizer->to_device();
  if (average != nullptr) average->to_device();
  mark_restored(variables);
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
