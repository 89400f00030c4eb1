// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep check` prints of a run: layers, data, variables, memory, messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/step_plan.h"
#include "model/graph.h"
#include "optim/average_rule.h"
#include "optim/matrix_work.h"
#include "run/setup/compute_device.h"
#include "run/setup/run_data.h"
#include "train/model.h"

namespace lockstep {

class Optimizer;

/// What rules that compute whole matrices need in addition to slots, on one rank with one thread.
struct MatrixMemory {
  std::size_t work = 0, state = 0;  ///< bytes; the state is divided among the ranks

  void add(const MatrixWork& matrices, bool owned) {
    work += matrices.memory_bytes() - (owned ? matrices.state_bytes() : 0);
    state += matrices.state_bytes();
  }
};

/// What is printed of a run in addition to its layers. References outlive it.
struct Sizes {
  const RunData& data;
  const Model& model;
  const Optimizer& optimizer;
  const StepPlan& plan;
  const Graph::Calls& calls;
  const std::optional<AverageOptions>& average;
  std::int64_t rounds;
  bool on_device, shard, noise_scale, compress;
  std::size_t residuals;  ///< bytes of error feedback, of all ranks together
  MatrixMemory matrices;
  std::optional<int> branches;       ///< of a training step on one rank's GPU; none: there is no GPU here
  std::size_t branch_bytes;          ///< of each after the first
  std::vector<std::string> sources;  ///< that are mixed
  std::string servers;               ///< what they hold; empty: none
  std::string gating;                ///< empty: graph
  std::vector<std::string> warnings;

  std::int64_t shards() const { return plan.spec().shards; }
  const VariableStore& variables() const { return *model.variables; }
  double dense_bytes() const { return 4.0 * static_cast<double>(variables().dense_elements()); }
};

/// The layers were prepared.
void print_layers(const Model& model, const Graph::Calls& calls);
void print_data(const Sizes& sizes);
/// Returns the bytes that a rank sends of the sparse gradients of a step.
double print_variables(const Sizes& sizes);
void print_memory(const Sizes& sizes);
void print_messages(const Sizes& sizes, double sparse_bytes);
void print_gpu_memory(const ComputeDevice& device, const std::string& no_gpu);

}  // namespace lockstep
