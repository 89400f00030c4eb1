// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The gradients of a step as pairs with their variables, in host memory, between the two halves of a step:
//
//   Gradients& gradients = trainer.compute_gradients();
//   for (GradientAndVariable& pair : gradients) ...change pair.gradient...
//   trainer.apply_gradients(gradients);
//
// A gradient is that of the mean loss of the whole global batch, the same on all ranks: summed over them,
// divided by the loss scale, with L1 and L2, before clipping. All ranks change it alike. Nothing compares
// gradients; a rank that changed its own differently is named when ranks compare their variables next
// (comm.check_every_steps).
//
// Frozen variables have no pair. A table with a sparse gradient has the rows that the step touched.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "model/variable_store.h"
#include "train/executor_context.h"
#include "train/sparse_gradients.h"
#include "train/step_result.h"

namespace lockstep {

struct GradientAndVariable {
  VariableId id = VariableId::none;
  const Variable* variable = nullptr;  ///< name and shape; the values: VariableStore::tensor(id)
  /// One value per element of the variable; of a sparse table, those of `rows`, one after the other.
  std::span<float> gradient;
  std::span<const std::int32_t> rows;  ///< ascending; empty unless is_sparse()
  bool is_sparse() const { return variable->sparse_index >= 0; }
};

/// The trainer's own. A device's memory is copied to the host and back.
class Gradients {
 public:
  /// `dense`: flat as in the variable store, on the device; `sparse` may be null. All outlive it.
  Gradients(const ExecutorContext& context, float* dense, const SparseGradients* sparse);
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  // One pair for each trainable variable, in the order of the layers.
  auto begin() { return pairs_.begin(); }
  auto end() { return pairs_.end(); }
  std::size_t size() const { return pairs_.size(); }
  GradientAndVariable& operator[](std::size_t i) { return pairs_[i]; }
  /// Throws Error(usage) if there is no pair of this name.
  GradientAndVariable& of(std::string_view variable);

  /// The step's numbers: loss, samples, learning rate.
  const StepResult& result() const { return result_; }

  /// Copies the present gradients of the device to the pairs, and back; for the trainer.
  void fetch(const StepResult& result);
  void give_back();

 private:
  ExecutorContext context_;
  float* dense_;
  const SparseGradients* sparse_;
  std::vector<GradientAndVariable> pairs_;
  StepResult result_;
  // Copies of a device's memory; empty on the CPU.
  Buffer host_;
  struct Table {
    std::vector<std::int32_t> rows;
    std::vector<float> values;
  };
  std::vector<Table> tables_;  ///< by Variable::sparse_index
};

}  // namespace lockstep
