// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of large tables of which a step touches few rows: from the layers, over ranks and threads, to the
// optimizer they stay (rows, values). On a device they stay there, but for their way between ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/sparse_sum.h"
#include "model/variable_store.h"
#include "optim/update_context.h"
#include "train/device_sparse_sum.h"

namespace lockstep {

/// Before VariableStore::commit(): which tables' gradients stay sparse. A table's does if a step of
/// `batch_size` samples can touch at most the share `below` of its rows. Arithmetic on shapes alone: the same
/// on all ranks.
void choose_sparse(VariableStore& variables, std::int64_t batch_size, double below);

class SparseGradients final : public SparseTotals {
 public:
  /// For the store's sparse tables. All ranks; microshards have up to `max_samples` samples. `place`: of the
  /// layers and the optimizer.
  SparseGradients(DeviceSparseSum::Place place, Communicator& communicator, ThreadPool& pool,
                  const VariableStore& variables, int shards, std::int64_t max_samples);

  /// No microshard has touched a row.
  void clear();
  /// Where an own microshard's gradients go, by Variable::sparse_index; all of it on the device. Different
  /// shards may be filled by different threads.
  const SparseRows* leaves(int shard) const;
  /// All ranks, with all microshards done, on a device in its stream. Waits for a device. No allocation.
  void reduce();
  /// Of the global batch, on all ranks; by Variable::sparse_index. Between reduce() and the next step. Its
  /// count lies in host memory; rows and values on the device, for what enters the stream.
  const SparseRows& total(int index) const override {
    const auto i = static_cast<std::size_t>(index);
    return device_sums_.empty() ? sums_[i]->total() : device_sums_[i]->total();
  }
  /// The same for kernels that read the count themselves: it lies on the device, too.
  const SparseRows& total_on_device(int index) const override {
    const auto i = static_cast<std::size_t>(index);
    return device_sums_.empty() ? sums_[i]->total() : device_sums_[i]->total_on_device();
  }

  std::size_t memory_bytes() const;
  /// What this rank sent in the last step.
  std::int64_t bytes_sent() const;

 private:
  void reduce_on_device();

  DeviceSparseSum::Place place_;
  Range own_;
  // One of them, by where the layers work.
  std::vector<std::unique_ptr<SparseSum>> sums_;
  std::vector<std::unique_ptr<DeviceSparseSum>> device_sums_;
  Buffer workspace_;  ///< of device_sums_, one after another
  bool exchanges_;
  std::vector<SparseRows> leaves_;  ///< [own shard][table]
  std::vector<std::string> names_;
};

}  // namespace lockstep
