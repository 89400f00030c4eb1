// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What hooks keep in checkpoints: numbers that belong to the run and are the same on all ranks. The registry
// holds views of them, in the order in which they were declared, and their initial values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "session/deferred_calls.h"
#include "session/hook.h"
#include "session/state_settings.h"

namespace lockstep {

class HookState {
 public:
  /// `deferred` outlives it.
  explicit HookState(DeferredCalls& deferred) : deferred_(deferred) {}

  /// Declares, in begin, `values` that are kept as state/hooks/<hook>/<key> (an on-disk name: do not change).
  /// They live as long as the hook, which is one of all ranks. Under other `settings` all but the first
  /// `lasting` ones begin anew when the run continues.
  void declare(const Hook& hook, const std::string& key, std::span<double> values, StateSettings settings,
               std::size_t lasting = 0);
  /// The name of such values in a checkpoint.
  static std::string path(const Hook& hook, const std::string& key);
  /// Adds the deferred calls after the last declare(), and remembers all values as the initial ones.
  void close();
  /// Gives everything its initial value.
  void reset();

  /// The tensors of a checkpoint. Deferred calls are part of it only if there are any, or if `with_deferred`
  /// asks for them: to restore them.
  std::span<const CheckpointTensor> tensors(bool with_deferred) const;
  /// What the declared values depend on. A piece has the name of its tensor.
  const std::vector<StatePiece>& pieces() const { return pieces_; }

 private:
  DeferredCalls& deferred_;
  std::vector<StatePiece> pieces_;
  std::vector<CheckpointTensor> tensors_;  ///< after close() the last one is that of deferred_
  std::vector<double> initial_;
};

}  // namespace lockstep
