// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to session: which state of a checkpoint a run keeps, which begins anew, and what does not fit; and
// what the state of a run depends on. The chief uses it (run_state.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"
#include "model/variable_store.h"
#include "optim/average_progress.h"
#include "session/run_state.h"
#include "session/state_settings.h"

namespace lockstep {

/// What the slots of the optimizer depend on: the rule; and what they mean for variables where it is not
/// that.
StatePiece piece_of(const Optimizer& optimizer, const VariableStore& variables);
/// What an average depends on, and how far it is.
StatePiece piece_of(const MovingAverage& average);

/// The tensor of this path; null: there is none.
const CheckpointEntry* find_entry(const CheckpointFile& file, const std::string& path);
/// Throws Error(checkpoint) if the file lacks a tensor, or has it in another shape, or has variables that are
/// not among `tensors`.
void require_fit(const CheckpointFile& file, std::span<const CheckpointTensor> tensors);

class StateReader {
 public:
  /// All of it outlives the reader.
  StateReader(const CheckpointFile& file, const VariableStore& variables, const RestoredState& state);

  /// Reads all state but what lies on different ranks. `tensors`: state_tensors() without averages. Throws
  /// Error(checkpoint) for what does not fit.
  void read(std::span<const CheckpointTensor> tensors);
  /// Whether the tensor has its values in the file, and they are kept.
  bool keeps(const CheckpointTensor& tensor) const;
  /// The slots of the variable in the file, if it has any, mean what they mean in this run.
  bool keeps_slots_of(const Variable& variable) const { return !is_for_another_rule(variable.name); }
  const std::vector<PieceOutcome>& outcomes() const { return report_.outcomes(); }

 private:
  bool is_for_another_rule(std::string_view variable) const;
  bool has_slots_of(std::string_view variable) const;
  bool has_slot(std::string_view slot) const;
  void report_slots(std::span<const CheckpointTensor> fresh);
  void read_hooks();
  void read_average();
  AverageProgress progress_of(const MovingAverage& average, std::size_t found);

  const CheckpointFile& file_;
  const VariableStore& variables_;
  const RestoredState& state_;
  const StatePieces before_;
  StateReport report_;
};

}  // namespace lockstep
