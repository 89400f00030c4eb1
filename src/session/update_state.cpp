// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/update_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "comm/agree.h"
#include "model/variable_store.h"
#include "optim/optimizer.h"

namespace lockstep {

namespace {

/// Whether the run that wrote the file updated the variable by a rule with these slots, if it has any.
bool was_updated(const CheckpointFile& file, const Optimizer& optimizer, const Variable& variable) {
  bool has_slots = false;
  for (std::size_t slot = 0; slot < optimizer.slot_names().size(); ++slot) {
    const std::string_view name = optimizer.slot_name(slot, variable);
    if (name.empty()) continue;
    if (file.has(fmt::format("slots/{}/{}", name, variable.name))) return true;
    has_slots = true;
  }
  return !has_slots;
}

/// The tensor of the file; else the number of updates alone.
std::vector<double> kept_in(const CheckpointFile& file, const Optimizer& optimizer,
                            const Variable& variable) {
  const auto steps = static_cast<double>(file.header().global_step);
  if (!was_updated(file, optimizer, variable)) return {0};
  const std::string path = std::string(kUpdates) + variable.name;
  const auto entry = std::ranges::find(file.entries(), path, &CheckpointEntry::path);
  if (entry == file.entries().end()) return {steps};
  if (entry->dtype != DType::f64 || entry->shape.rank() != 1 || entry->shape[0] < 1)
    throw Error(ErrorKind::checkpoint, fmt::format("{} is not what Lockstep writes", path), file.path(),
                "Use another checkpoint of the run.");
  std::vector<double> values(static_cast<std::size_t>(entry->shape[0]));
  file.read_into(path, Tensor(values.data(), DType::f64, entry->shape));
  if (!(values[0] >= 0 && values[0] <= steps))
    throw Error(ErrorKind::checkpoint, fmt::format("{} has {} updates in {} steps", path, values[0], steps),
                file.path(), "Use another checkpoint of the run.");
  return values;
}

}  // namespace

void add_updates(const VariableStore& variables, const Optimizer& optimizer,
                 std::vector<CheckpointTensor>& tensors) {
  for (const Variable& variable : variables.variables())
    if (variable.trainable)
      if (const std::optional<Tensor> kept = optimizer.kept_updates(variable))
        tensors.push_back({std::string(kUpdates) + variable.name, *kept});
}

void restore_updates(Communicator& world, const CheckpointFile* file, const VariableStore& variables,
                     Optimizer& optimizer, FunctionRef<bool(const Variable&)> keeps) {
  std::vector<const Variable*> trainable;
  std::size_t most = 0;
  for (const Variable& variable : variables.variables()) {
    if (!variable.trainable) continue;
    trainable.push_back(&variable);
    most = std::max(most, optimizer.num_kept_updates(variable));
  }
  const std::size_t width = 1 + most;                         // how many there are, then those
  std::vector<double> numbers(trainable.size() * width + 1);  // and the steps of the run
  agree(
      world,
      [&] {
        if (file == nullptr) return;
        numbers.back() = static_cast<double>(file->header().global_step);
        for (std::size_t i = 0; i < trainable.size(); ++i) {
          std::vector<double> kept{0};
          if (keeps(*trainable[i])) kept = kept_in(*file, optimizer, *trainable[i]);
          if (kept.size() != optimizer.num_kept_updates(*trainable[i])) kept.resize(1);  // of another rule
          numbers[i * width] = static_cast<double>(kept.size());
          std::ranges::copy(kept, numbers.begin() + static_cast<std::ptrdiff_t>(i * width + 1));
        }
      },
      "reading the updates of variables");
  world.broadcast(numbers.data(), numbers.size() * sizeof(double), 0, "updates of variables");
  std::vector<Optimizer::RestoredUpdates> all;
  for (std::size_t i = 0; i < trainable.size(); ++i)
    all.push_back({trainable[i],
                   std::span(numbers).subspan(i * width + 1, static_cast<std::size_t>(numbers[i * width]))});
  optimizer.restore_updates(static_cast<std::int64_t>(numbers.back()), all);
}

}  // namespace lockstep
