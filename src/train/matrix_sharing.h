// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shares the work of an update on whole matrices (optim/matrix_work.h) among the ranks and their threads.
// Each matrix has one owner; all ranks receive the results.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "optim/matrix_work.h"
#include "optim/update_context.h"

namespace lockstep {

class MatrixSharing {
 public:
  /// All ranks. References outlive it.
  MatrixSharing(MatrixWork& work, const UpdateContext& context, Communicator& communicator);

  /// Computes the matrices of this rank and exchanges the results, after Optimizer::measure(). All ranks. No
  /// allocation.
  void run();
  MatrixWork& work() { return work_; }
  /// The rank that computes a matrix.
  int owner(std::size_t matrix) const { return owner_[matrix]; }
  /// Bytes that this rank sends in a step.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  std::size_t memory_bytes() const { return work_.memory_bytes() + staging_.size_bytes(); }

 private:
  void exchange();

  MatrixWork& work_;
  UpdateContext context_;
  Communicator& communicator_;
  std::vector<int> owner_;                           ///< rank, by matrix
  std::vector<std::vector<std::size_t>> of_thread_;  ///< this rank's matrices
  Buffer staging_;  ///< directions in pinned host memory; empty on the CPU and with one rank
  std::vector<OutMessage> out_;
  std::vector<InMessage> in_;
  std::int64_t bytes_sent_ = 0;
};

/// Gives each item to one of `workers`: the most expensive first, each to the worker with the least so far,
/// the lowest of several (Graham 1969). Returns the worker by item.
std::vector<int> share_evenly(const std::vector<double>& costs, int workers);

}  // namespace lockstep
