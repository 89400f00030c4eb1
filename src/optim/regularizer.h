// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// L1 and L2 regularization of chosen variables: l2 / 2 * sum w^2 + l1 * sum |w|, a part of the training loss.
// Every rank adds its gradient to the summed gradients once per step, without communication. Sums run over
// chunks of a fixed size, in order: the same bits on any number of ranks and threads.
//
// On a device, one kernel covers all variables. The penalty is computed before the forward pass, so that the
// host has it when it has the loss.
#pragma once

#include <string>
#include <vector>

#include "config/params.h"
#include "core/buffer.h"
#include "core/name_pattern.h"
#include "core/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/penalty_table.h"
#include "model/variable_store.h"

namespace lockstep {

/// A line of model.regularization.
struct RegularizationRule {
  NamePattern variables;
  double l1 = 0, l2 = 0;
  std::string where = {};
};
/// Options of a rule.
std::span<const ParamSpec> regularization_table();
/// `list`: model.regularization; null: no rules. Throws Error(config) with position.
std::vector<RegularizationRule> regularization_from_config(const Node& list);

class Regularizer {
 public:
  /// Adds up the factors of rules that match the same variable. Throws Error(config) for a pattern that
  /// matches no trainable or frozen variable; the message names the nearest one. Frozen ones are not
  /// regularized.
  Regularizer(std::span<const RegularizationRule> rules, const VariableStore& variables, Device& device);

  bool empty() const { return pieces_.empty(); }
  /// Keeps the gradients of regularized tables dense: regularization changes all rows in every step.
  void keep_dense(VariableStore& variables) const {
    for (const Piece& piece : pieces_) variables.keep_dense(piece.variable);
  }
  /// Adds the work of the penalty of the current values to the stream of a device, before the step's other
  /// work. Nothing on the host. Later calls do not allocate.
  void begin(const KernelTable& kernels, const Lane& lane, const VariableStore& variables);
  /// Returns the penalty of the current values and adds its gradient to `gradients` (flat like the trainable
  /// values, on the device). On a device, begin() was called with these values, and this waits for its work
  /// alone. No allocation.
  double add(const KernelTable& kernels, ThreadPool& pool, std::span<Lane> lanes,
             const VariableStore& variables, float* gradients);

 private:
  struct Piece {
    VariableId variable;
    std::int64_t first, count;  ///< elements of the variable
    double l1, l2;
  };
  void make_table(const VariableStore& variables);
  double total() const;

  Device& device_;
  std::vector<Piece> pieces_;
  Buffer sums_;   ///< pinned: one per piece
  Buffer table_;  ///< a device's PenaltyBlocks: one per piece
  DeviceEvent summed_;
};

}  // namespace lockstep
