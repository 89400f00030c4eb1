// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// L1 and L2 on chosen variables: l2 / 2 * sum w^2 + l1 * sum |w|, a part of the training loss. Every rank
// adds the gradient to the summed one by itself: nothing passes through microshards. Sums run over chunks of
// a fixed size, in order: the same bits on any number of ranks and threads.
#pragma once

#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/params.h"
#include "core/thread_pool.h"
#include "kernels/kernel_table.h"
#include "model/variable_store.h"

namespace lockstep {

/// A line of model.regularization.
struct RegularizationRule {
  std::string variables;  ///< a pattern: * stands for anything (also '/'), ? for one character
  double l1 = 0, l2 = 0;
  std::string where = {};
};
/// Options of a rule.
std::span<const ParamSpec> regularization_table();
/// From the list; null: none. Throws Error(config).
std::vector<RegularizationRule> regularization_from_config(const Node& list);

class Regularizer {
 public:
  /// What several rules say of a variable is added. Throws Error(config) for a pattern that no trainable
  /// variable matches; it names the nearest.
  Regularizer(std::span<const RegularizationRule> rules, const VariableStore& variables, Device& device);

  bool empty() const { return pieces_.empty(); }
  /// They move in every step, whatever it touches: their gradients must be dense.
  void keep_dense(VariableStore& variables) const {
    for (const Piece& piece : pieces_) variables.keep_dense(piece.variable);
  }
  /// The penalty of the values as they are; its gradient is added to `gradients` (flat, on the device, like
  /// the trainable values). Waits for the device. No allocation.
  double add(const KernelTable& kernels, ThreadPool& pool, std::span<Lane> lanes,
             const VariableStore& variables, float* gradients);

 private:
  struct Piece {
    VariableId variable;
    std::int64_t first, count;  ///< elements of it
    double l1, l2;
  };
  Device& device_;
  std::vector<Piece> pieces_;
  Buffer sums_;  ///< pinned: of each piece
};

}  // namespace lockstep
