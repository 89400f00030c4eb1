// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of large tables of which a step touches few rows. They stay pairs of (rows, values) from the
// layers, through the sums over workers and ranks, to the optimizer. On a device they stay in its memory,
// except for the exchange between ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/sparse_sum.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "model/variable_store.h"
#include "optim/update_context.h"
#include "train/device_sparse_sum.h"

namespace lockstep {

/// The share of a table's rows up to which a sparse gradient moves fewer bytes than a dense one, with those
/// of slow paths counted several times (docs/gpu.md). On the CPU, where the work on the rows counts too: a
/// half.
double sparse_share(bool on_device, int ranks);

/// Chooses the tables whose gradients stay sparse: those of whose rows a step of `batch_size` samples can
/// touch at most the share `below`. Depends on shapes alone, so all ranks choose the same. Call it before
/// VariableStore::commit().
void choose_sparse(VariableStore& variables, std::int64_t batch_size, double below);

class SparseGradients final : public SparseTotals {
 public:
  /// The gradients of the store's sparse tables. All ranks; microshards have up to `max_samples` samples.
  /// `place` is where the layers and the optimizer work. `compress`: as in SparseSum; on the host alone.
  SparseGradients(DeviceSparseSum::Place place, Communicator& communicator, ThreadPool& pool,
                  const VariableStore& variables, int shards, std::int64_t max_samples, bool compress);

  /// Sets the number of touched rows of all microshards to 0.
  void clear();
  /// Where an own microshard's gradients are written, by Variable::sparse_index; on the device. Workers may
  /// fill different shards concurrently.
  const SparseRows* leaves(int shard) const;
  /// Sums over workers and ranks. All ranks, after all microshards have been computed (or are in a device's
  /// stream). With several ranks, waits for a device. No allocation.
  void reduce();
  /// The gradient of the global batch, by Variable::sparse_index; the same on all ranks. Valid from reduce()
  /// to the next step. The count lies in host memory; rows and values on the device, for work that enters the
  /// stream. With one rank, the first call in a step waits for a device.
  const SparseRows& total(int index) const override {
    const auto i = static_cast<std::size_t>(index);
    return device_sums_.empty() ? sums_[i]->total() : device_sums_[i]->total();
  }
  /// total() with the count on the device, for kernels that read it.
  const SparseRows& total_on_device(int index) const override {
    const auto i = static_cast<std::size_t>(index);
    return device_sums_.empty() ? sums_[i]->total() : device_sums_[i]->total_on_device();
  }

  std::size_t memory_bytes() const;
  /// Bytes that this rank sent in the last step.
  std::int64_t bytes_sent() const;

 private:
  void reduce_on_device();

  DeviceSparseSum::Place place_;
  Range own_;
  // sums_ on the CPU, device_sums_ on a device; the other is empty.
  std::vector<std::unique_ptr<SparseSum>> sums_;
  std::vector<std::unique_ptr<DeviceSparseSum>> device_sums_;
  Buffer workspace_;  ///< of device_sums_, one after another
  bool exchanges_;
  std::vector<SparseRows> leaves_;  ///< [own shard][table]
  std::vector<std::string> names_;
};

}  // namespace lockstep
