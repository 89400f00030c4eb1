// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of an update that needs whole matrices, such as the orthogonalization of Muon. Each matrix is
// computed by one thread of one rank, and all ranks receive the result, so the cost per rank falls with the
// number of ranks and the bits do not depend on it. train/matrix_sharing.h runs it between the sum of the
// gradients and Optimizer::update().
#pragma once

#include <cstdint>
#include <vector>

#include "core/data.h"
#include "core/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/lane.h"

namespace lockstep {

class MatrixWork {
 public:
  struct Matrix {
    Range place;      ///< its elements in directions(), from a multiple of 16 on
    double cost = 0;  ///< multiplications and additions, to share the work evenly
  };

  virtual ~MatrixWork() = default;
  /// In the order of the variables; the same on all ranks.
  virtual const std::vector<Matrix>& matrices() const = 0;
  /// On the device. What compute() reads and writes, and the ranks exchange.
  virtual float* directions() const = 0;
  /// Computes a matrix in place. Threads may compute different matrices at the same time, each with its lane.
  virtual void compute(const Lane& lane, std::size_t matrix) = 0;
  virtual std::size_t memory_bytes() const = 0;
};

}  // namespace lockstep
