// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the record of a step (step_record.h): an observer that hashes what it sees. It allocates only when it
// is made. The observed step takes longer and has the same bits.
//
//   clear(), Trainer::add_observer(recorder), compute(), summed(), apply(), gather(communicator, true)
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/tree.h"
#include "core/range.h"
#include "session/step_record.h"
#include "train/executor.h"

namespace lockstep {

class StepRecorder : public StepObserver {
 public:
  /// `calls`: those of the observed executor. All ranks. References outlive the recorder.
  StepRecorder(const ExecutorContext& context, const Graph::Calls& calls);

  /// Forgets the step before. Called before the step.
  void clear();
  /// Called when gradients are summed. `gradients` is flat as in the variable store; `sparse` (may be null)
  /// holds those of sparse tables.
  void summed(const float* gradients, const SparseGradients* sparse);
  /// The hashes of all ranks and their hosts; if the step is `finished`, also the hashes of the variables.
  /// The caller adds the step's numbers and the environment. All ranks.
  StepRecord gather(Communicator& communicator, bool finished);

  void fetched(const Microshard&, const Lane&, const float* features) override;
  void forward(int operation, const Pass& pass) override;
  void lost(const Microshard&, const Lane&, std::span<const HeadSums>, std::span<const LossStage::Place>,
            const LabelBlock&) override;
  void backward(int operation, const Pass& pass) override;
  void backward_local(int operation, const Pass& pass) override;
  void synchronised(int operation, bool backward, std::span<const double* const> totals) override;

 private:
  /// Where an operation's rows begin.
  struct Rows {
    int forward_sums = -1, outputs = -1, input_gradients = -1, variable_gradients = -1, backward_sums = -1;
  };
  int add_row(const char* stage, std::string layer, std::string what, bool per_microshard);
  void add_operation_forward(int operation);
  void add_operation_backward(int operation);
  std::string layer_text(const Graph::Operation& operation) const;
  std::string value_text(int value) const;
  std::span<const Variable> variables_of(const Graph::Operation& operation) const;
  const Graph::Operation& operation_of(int number) const {
    return calls_.operations[static_cast<std::size_t>(number)];
  }
  std::uint64_t hash_bytes(const void* data, std::size_t bytes) const;
  std::uint64_t hash(ConstData data, std::int64_t elements) const {
    return hash_bytes(data.address(), static_cast<std::size_t>(elements) * size_in_bytes(data.type()));
  }
  std::uint64_t& at(int row, int shard) {
    return hashes_[static_cast<std::size_t>(row) * stride_ + static_cast<std::size_t>(shard - own_.first)];
  }
  std::uint64_t& at(int row) { return hashes_[static_cast<std::size_t>(row) * stride_]; }
  std::uint64_t hash(const SparseRows& rows, std::int32_t count, const Variable& table) const;
  std::uint64_t hash_leaf(const SparseRows& rows, const Variable& table) const;
  void variable_gradients(int operation, const Pass& pass);

  ExecutorContext context_;
  const Graph::Calls& calls_;
  Range own_;
  std::size_t stride_;           // the most microshards that a rank has, at least 1
  std::vector<RecordRow> rows_;  // without hashes
  std::vector<Rows> of_operation_;
  int samples_ = 0, features_ = 0, loss_ = 0, d_outputs_ = 0, sums_ = 0, updates_ = 0;
  std::vector<std::uint64_t> hashes_;  // by row, then own microshard
};

}  // namespace lockstep
