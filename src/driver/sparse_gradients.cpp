// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/sparse_gradients.h"

#include "core/trace.h"

namespace lockstep {

void choose_sparse(VariableStore& variables, std::int64_t batch_size, double below) {
  for (std::size_t i = 0; i < variables.variables().size(); ++i) {
    const Variable& variable = variables.variables()[i];
    if (!variable.row_bound) continue;
    const std::int64_t touched = variable.row_bound->per_sample * batch_size + variable.row_bound->per_step;
    if (static_cast<double>(touched) <= below * static_cast<double>(variable.shape[0]))
      variables.make_sparse(static_cast<VariableId>(i));
  }
}

SparseGradients::SparseGradients(Communicator& communicator, ThreadPool& pool, const VariableStore& variables,
                                 int shards, std::int64_t max_samples)
    : own_(shards_of_rank(communicator.rank(), communicator.size(), shards)) {
  for (const VariableId id : variables.sparse()) {
    const Variable& variable = variables[id];
    const RowBound& bound = *variable.row_bound;
    sums_.push_back(std::make_unique<SparseSum>(communicator, pool, shards, variable.shape[0],
                                                variable.shape.num_elements() / variable.shape[0],
                                                bound.per_sample * max_samples + bound.per_step));
    names_.push_back("rows of the gradient of " + variable.name);
  }
  for (std::int64_t shard = own_.first; shard < own_.last; ++shard)
    for (const auto& sum : sums_) leaves_.push_back(sum->leaf(static_cast<int>(shard)));
}

void SparseGradients::clear() {
  for (const auto& sum : sums_) sum->clear();
}

const SparseRows* SparseGradients::leaves(int shard) const {
  return leaves_.data() + static_cast<std::size_t>(shard - own_.first) * sums_.size();
}

void SparseGradients::reduce() {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Traced traced("waiting", names_[i].c_str());
    sums_[i]->reduce(names_[i].c_str());
  }
}

std::size_t SparseGradients::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& sum : sums_) bytes += sum->memory_bytes();
  return bytes;
}

std::int64_t SparseGradients::bytes_sent() const {
  std::int64_t bytes = 0;
  for (const auto& sum : sums_) bytes += sum->bytes_sent();
  return bytes;
}

}  // namespace lockstep
